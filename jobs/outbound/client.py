"""The one HTTP client of a process: pooled, checked, bounded, and quiet about addresses."""

from __future__ import annotations

import ssl
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Self

import certifi
import httpcore
import httpx

from app.clock import Clock
from jobs.outbound.addresses import (
    Resolver,
    check,
    host_and_port,
    parse,
)
from jobs.outbound.unpack import UnpackError, unpacker
from jobs.outbound.wire import (
    Backend,
    Budget,
    Budgets,
    CertificateError,
    OverdueError,
    RefusedError,
    StoppedError,
)
from jobs.tools import (
    AddressRefused,
    Answer,
    Broken,
    CertificateTrouble,
    ConnectFailed,
    Garbled,
    Header,
    Limits,
    Poured,
    Request,
    Stopped,
    Target,
    TimedOut,
    TooLarge,
    Trouble,
    Upload,
    Whole,
)

_IDLE_CONNECTIONS = 20
# Shorter than the patience of usual servers (5 s): a connection that they close while we send on
# it leaves a message unclear that never arrived.
_IDLE_S = 4.0
# What an exchange may raise: each is turned into a value at the edge of this module.
_FAILURES = (
    httpcore.TimeoutException,
    httpcore.NetworkError,
    httpcore.ProtocolError,
    httpcore.ProxyError,
    OverdueError,
    StoppedError,
    RefusedError,
    CertificateError,
)


class Outbound:
    """Outgoing HTTP for all threads of a process."""

    def __init__(
        self, *, clock: Clock, user_agent: str = "Laufzettel", resolver: Resolver | None = None
    ) -> None:
        self._clock = clock
        self._user_agent = user_agent
        self._resolver = resolver or Resolver()
        self._budgets = Budgets()
        self._pools: dict[Target, httpcore.ConnectionPool] = {}
        self._lock = threading.Lock()

    @property
    def user_agent(self) -> str:
        """What we call ourselves."""
        return self._user_agent

    @contextmanager
    def open(
        self, request: Request, *, target: Target, limits: Limits, pulse: Callable[[], bool]
    ) -> Iterator[Answer | Trouble]:
        """Send, and give the answer or what went wrong; closed on leaving."""
        url = parse(request.url)
        if isinstance(url, httpx.URL) and target.proxy:
            url = self._checked_literal(url, target)
        if isinstance(url, AddressRefused):
            yield url
            return
        budget = Budget(limits, monotonic=self._clock.monotonic, pulse=pulse)
        with self._budgets.spend(budget):
            opened = self._opened(_encoded(request, url, budget, self._user_agent), target, budget)
            try:
                yield opened
            finally:
                if isinstance(opened, _Answer):
                    opened.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *raised: object) -> None:
        self.close()

    def close(self) -> None:
        """Close all idle connections."""
        with self._lock:
            pools, self._pools = list(self._pools.values()), {}
        for pool in pools:
            pool.close()

    def _opened(
        self, request: httpcore.Request, target: Target, budget: Budget
    ) -> _Answer | Trouble:
        try:
            return _Answer(self._pool(target).handle_request(request), budget)
        except _FAILURES as error:
            return _trouble(error, budget)
        except OSError as error:
            # Our own files, a bundle or a client certificate: the configuration is to be mended.
            return ConnectFailed(f"a certificate file of ours: {error.strerror or 'unreadable'}")

    def _pool(self, target: Target) -> httpcore.ConnectionPool:
        with self._lock:
            if target not in self._pools:
                self._pools[target] = self._built(target)
            return self._pools[target]

    def _built(self, target: Target) -> httpcore.ConnectionPool:
        backend = Backend(
            resolver=self._resolver,
            budgets=self._budgets,
            private_hosts=target.private_hosts,
            is_proxy=bool(target.proxy),
        )
        return httpcore.ConnectionPool(
            ssl_context=_tls(target),
            proxy=_proxy(target),
            max_connections=None,
            max_keepalive_connections=_IDLE_CONNECTIONS,
            keepalive_expiry=_IDLE_S,
            network_backend=backend,
        )

    @staticmethod
    def _checked_literal(url: httpx.URL, target: Target) -> httpx.URL | AddressRefused:
        """Behind a proxy names are the proxy's to resolve; addresses and localhost are ours."""
        host, port = host_and_port(url)
        if host == "localhost" or host.endswith(".localhost"):
            return check(host, port, ("127.0.0.1",), target.private_hosts) or url
        try:
            return check(host, port, (host,), target.private_hosts) or url
        except ValueError:
            return url


class _Answer:
    def __init__(self, response: httpcore.Response, budget: Budget) -> None:
        self._response = response
        self._budget = budget
        self.status = response.status
        self.timing = budget.timing
        self.headers: tuple[Header, ...] = tuple(
            (name.decode("latin-1").lower(), value.decode("latin-1"))
            for name, value in response.headers
        )

    def pour(self, sink: Callable[[bytes], object], *, limit_bytes: int) -> Poured:
        """Unpack the body into the sink, piece by piece; what the sink raises passes through."""
        left_bytes = limit_bytes
        try:
            for piece in self._pieces():
                sink(piece[:left_bytes])
                if len(piece) > left_bytes:
                    return TooLarge()
                left_bytes -= len(piece)
        except _FailedError as failed:
            return failed.poured
        return Whole()

    def close(self) -> None:
        """Give the connection back if the body was read to its end, else close it."""
        self._response.close()

    def _pieces(self) -> Iterator[bytes]:
        # Only what the wire raises is caught: a full disk in the sink is not the peer's fault.
        packed = dict(self.headers).get("content-encoding", "")
        body = iter(self._response.iter_stream())
        try:
            unpack = unpacker(packed)
            while (chunk := next(body, None)) is not None:
                yield from unpack.feed(chunk)
            unpack.end()
        except UnpackError as error:
            raise _FailedError(Garbled(str(error))) from None
        except _FAILURES as error:
            raise _FailedError(_broken_off(error, self._budget)) from None


class _FailedError(Exception):
    def __init__(self, poured: Poured) -> None:
        super().__init__()
        self.poured = poured


def _encoded(request: Request, url: httpx.URL, budget: Budget, user_agent: str) -> httpcore.Request:
    given = {name.lower() for name, _ in request.headers}
    own = [("host", url.netloc.decode("ascii")), ("user-agent", user_agent), ("accept", "*/*")]
    if request.body or request.method not in {"GET", "HEAD"}:
        own.append(("content-length", str(_size_bytes(request.body))))
    headers = [(n, v) for n, v in own if n not in given] + list(request.headers)
    return httpcore.Request(
        method=request.method,
        url=httpcore.URL(
            scheme=url.raw_scheme, host=url.raw_host, port=url.port, target=url.raw_path
        ),
        headers=[(n.encode("latin-1", "replace"), _octets(v)) for n, v in headers],
        content=_told_when_sent(request.body, budget),
    )


def _octets(value: str) -> bytes:
    # A password may hold any letter; HTTP carries its bytes and does not say in which letters.
    try:
        return value.encode("latin-1")
    except UnicodeEncodeError:
        return value.encode()


def _size_bytes(body: bytes | Upload) -> int:
    return body.size_bytes if isinstance(body, Upload) else len(body)


def _told_when_sent(body: bytes | Upload, budget: Budget) -> Iterable[bytes]:
    """The body; the line after it is reached only when the last byte went to the network."""
    if isinstance(body, Upload):
        yield from body.pieces
    elif body:
        yield body
    budget.all_sent()


def _trouble(error: Exception, budget: Budget) -> Trouble:
    match error:
        case RefusedError(refusal=refusal):
            return refusal
        case CertificateError():
            return CertificateTrouble(str(error))
        case httpcore.ConnectError() | httpcore.ConnectTimeout() | httpcore.ProxyError():
            return ConnectFailed(str(error))
        case _:
            return _broken_off(error, budget)


def _broken_off(error: Exception, budget: Budget) -> TimedOut | Broken | Stopped:
    match error:
        case StoppedError():
            return Stopped()
        case OverdueError() | httpcore.TimeoutException():
            return TimedOut(sent=budget.sent)
        case httpcore.LocalProtocolError():
            return Broken(sent=False, reason="the request is not valid HTTP")
        case _:
            return Broken(sent=budget.sent, reason="connection closed")


def _proxy(target: Target) -> httpcore.Proxy | None:
    if not target.proxy:
        return None
    url = httpx.URL(target.proxy)
    auth = (url.username, url.password) if url.userinfo else None
    return httpcore.Proxy(str(url.copy_with(userinfo=b"")), auth=auth)


def _tls(target: Target) -> ssl.SSLContext:
    context = ssl.create_default_context(cafile=target.ca_file or certifi.where())
    if not target.ca_file:
        context.load_default_certs()
    if target.client_cert_file:
        context.load_cert_chain(target.client_cert_file, target.client_key_file or None)
    return context

"""Sockets that keep to a budget of time, and connect only to checked addresses.

httpcore's own time-outs start anew with every byte, so a peer that trickles is never cut; and it
resolves names by itself, after any check. Both are mended here, below httpcore.
"""

from __future__ import annotations

import select
import socket
import ssl
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

import httpcore

from app.points import point
from jobs.outbound.addresses import Resolver, check
from jobs.tools import AddressRefused, Limits, Timing

_BEAT_S = 1.0


class OverdueError(Exception):
    """The budget of time is spent."""


class StoppedError(Exception):
    """The caller's pulse said stop."""


class RefusedError(Exception):
    """The host is at an address that this request may not reach."""

    def __init__(self, refusal: AddressRefused) -> None:
        super().__init__(refusal.reason)
        self.refusal = refusal


class CertificateError(Exception):
    """The peer's certificate does not prove its name."""


class Budget:
    """The time that one exchange may still take, and what has left so far."""

    def __init__(
        self, limits: Limits, *, monotonic: Callable[[], float], pulse: Callable[[], bool]
    ) -> None:
        self._limits = limits
        self._monotonic = monotonic
        self._pulse = pulse
        now = monotonic()
        self._end = None if limits.total_s is None else now + limits.total_s
        self._mark_at, self._mark_bytes, self._beat_at = now, 0, now
        self._took_ms: dict[str, int] = {}
        self._sent_at: float | None = None

    @property
    def sent(self) -> bool:
        """Whether the whole request has left."""
        return self._sent_at is not None

    def all_sent(self) -> None:
        """The last byte of the request went to the network."""
        self._sent_at = self._monotonic()

    @contextmanager
    def spent_on(self, part: str) -> Iterator[None]:
        """Note how long this part of opening a connection takes."""
        began = self._monotonic()
        try:
            yield
        finally:
            self._took_ms[part] = round((self._monotonic() - began) * 1000)

    @property
    def timing(self) -> Timing:
        """What is known by now of where the time went."""
        return Timing(**self._took_ms)

    def came(self, size_bytes: int) -> None:
        """Bytes of the peer came."""
        if self._sent_at is not None and "first_byte_ms" not in self._took_ms:
            self._took_ms["first_byte_ms"] = round((self._monotonic() - self._sent_at) * 1000)
        self.moved(size_bytes)

    def connect_s(self) -> float:
        """The seconds that connecting may take."""
        return min(self._limits.connect_s, self._left_s())

    def slice_s(self) -> float:
        """The seconds to wait before the next look at the clock; raises when none are left."""
        return min(self._left_s(), _BEAT_S)

    def moved(self, size_bytes: int) -> None:
        """Count bytes in either direction: a span that is fast enough starts anew."""
        self._mark_bytes += size_bytes
        now = self._monotonic()
        if self._mark_bytes >= self._limits.min_rate_bytes_s * (now - self._mark_at):
            self._mark_at, self._mark_bytes = now, 0
        self.beat()

    def beat(self) -> None:
        """Tell the caller that time passes; raises if it wants to stop."""
        now = self._monotonic()
        if now - self._beat_at < _BEAT_S:
            return
        self._beat_at = now
        if not self._pulse():
            raise StoppedError

    def _left_s(self) -> float:
        now = self._monotonic()
        left_s = self._mark_at + self._limits.span_s - now
        if self._end is not None:
            left_s = min(left_s, self._end - now)
        if left_s <= 0:
            raise OverdueError
        return left_s


class Budgets(threading.local):
    """The budget of the exchange that the present thread carries out."""

    present: Budget | None = None

    @contextmanager
    def spend(self, budget: Budget) -> Iterator[None]:
        """Let the sockets used inside keep to this budget."""
        former, self.present = self.present, budget
        try:
            yield
        finally:
            self.present = former

    @property
    def budget(self) -> Budget:
        """The present budget; no socket is used without one."""
        if self.present is None:
            raise RuntimeError("a socket was used outside an exchange")
        return self.present


class Stream(httpcore.NetworkStream):
    """A connected socket."""

    def __init__(self, sock: socket.socket, budgets: Budgets) -> None:
        self._sock = sock
        self._budgets = budgets

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        del timeout  # the budget is stricter
        budget = self._budgets.budget
        while True:
            self._sock.settimeout(budget.slice_s())
            try:
                data = self._sock.recv(max_bytes)
            except TimeoutError:
                budget.beat()
                continue
            except OSError as error:
                raise httpcore.ReadError(_words(error)) from None
            budget.came(len(data))
            return data

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        del timeout  # the budget is stricter
        budget, rest = self._budgets.budget, memoryview(buffer)
        while rest:
            self._sock.settimeout(budget.slice_s())
            try:
                size_bytes = self._sock.send(rest)
            except TimeoutError:
                budget.beat()
                continue
            except OSError as error:
                raise httpcore.WriteError(_words(error)) from None
            budget.moved(size_bytes)
            rest = rest[size_bytes:]

    def close(self) -> None:
        self._sock.close()

    def start_tls(
        self,
        ssl_context: ssl.SSLContext,
        server_hostname: str | None = None,
        timeout: float | None = None,
    ) -> Stream:
        del timeout  # the budget is stricter
        if isinstance(self._sock, ssl.SSLSocket):
            raise httpcore.ConnectError("TLS inside TLS: use a proxy with http://")
        try:
            budget = self._budgets.budget
            self._sock.settimeout(budget.connect_s())
            with budget.spent_on("tls_ms"):
                wrapped = ssl_context.wrap_socket(self._sock, server_hostname=server_hostname)
        except ssl.SSLCertVerificationError as error:
            self.close()
            raise CertificateError(error.verify_message) from None
        except (OSError, OverdueError) as error:
            self.close()
            raise httpcore.ConnectError(f"TLS: {_words(error)}") from None
        return Stream(wrapped, self._budgets)

    def get_extra_info(self, info: str) -> Any:
        match info:
            case "ssl_object" if isinstance(self._sock, ssl.SSLSocket):
                return self._sock
            case "socket":
                return self._sock
            case "is_readable":
                return _is_readable(self._sock)
            case _:
                return None


class Backend(httpcore.NetworkBackend):
    """Connects to checked addresses only; with ``is_proxy`` to the proxy that was configured."""

    def __init__(
        self,
        *,
        resolver: Resolver,
        budgets: Budgets,
        private_hosts: tuple[str, ...],
        is_proxy: bool,
    ) -> None:
        self._resolver = resolver
        self._budgets = budgets
        self._private_hosts = private_hosts
        self._is_proxy = is_proxy

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> Stream:
        del timeout, local_address, socket_options  # the budget is stricter; we use no others
        bare = host.lower().rstrip(".")
        budget = self._budgets.budget
        with budget.spent_on("dns_ms"):
            addresses = self._addresses(bare, port)
        refusal = check(bare, port, addresses, self._private_hosts)
        if refusal is not None and not self._is_proxy:
            raise RefusedError(refusal)
        point("outbound.connect.before")
        with budget.spent_on("connect_ms"):
            sock = self._connected(addresses, port)
        point("outbound.connect.after")
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return Stream(sock, self._budgets)

    def _addresses(self, host: str, port: int) -> tuple[str, ...]:
        try:
            timeout_s = self._budgets.budget.connect_s()
            return self._resolver.addresses(host, port, timeout_s=timeout_s)
        except TimeoutError:
            raise httpcore.ConnectTimeout("name resolution took too long") from None
        except OSError as error:
            raise httpcore.ConnectError(f"name not found: {_words(error)}") from None

    def _connected(self, addresses: tuple[str, ...], port: int) -> socket.socket:
        """The first that answers: the address itself is dialled, so no name can change its mind."""
        last: OSError = OSError("no address")
        for address in addresses:
            try:
                return socket.create_connection(
                    (address, port), timeout=self._budgets.budget.connect_s()
                )
            except OSError as error:
                last = error
        if isinstance(last, TimeoutError):
            raise httpcore.ConnectTimeout("no connection in time") from None
        raise httpcore.ConnectError(_words(last)) from None


def _is_readable(sock: socket.socket) -> bool:
    # Readable while idle means closed by the peer: such a connection is not used again.
    if sock.fileno() < 0:
        return True
    poll = select.poll()
    with suppress(OSError):
        poll.register(sock, select.POLLIN)
        return bool(poll.poll(0))
    return True


def _words(error: Exception) -> str:
    if isinstance(error, OverdueError | TimeoutError):
        return "took too long"
    if isinstance(error, ssl.SSLError):
        return str(error.reason or "failed").lower().replace("_", " ")
    return str(getattr(error, "strerror", "") or "failed").lower()

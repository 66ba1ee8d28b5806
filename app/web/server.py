"""An ASGI application served inside this process: granian on a thread of its own."""

from __future__ import annotations

import asyncio
import socket
import threading
from dataclasses import dataclass

from granian.constants import Interfaces
from granian.http import HTTP1Settings
from granian.server.embed import Server as Granian

from app.clock import Clock
from app.config import Tls
from app.web.front import Web

_BACKLOG = 1024
# Requests that are under way at one moment; more wait in the socket's own queue.
_MOST_REQUESTS = 512
_HEADER_BYTES = 64 * 1024
_START_S = 20.0
_LOOK_AGAIN_S = 0.005


class ServerError(Exception):
    """The server cannot be started; the message says why."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where to listen. Port 0 is any that is free; a shared one is another process's to hold."""

    host: str
    port: int
    tls: Tls | None = None
    is_shared: bool = False


class WebServer:
    """Serves one application until it is stopped."""

    def __init__(self, app: Web, place: Place, clock: Clock) -> None:
        self._app = app
        self._place = place
        self._clock = clock
        self._claim: socket.socket | None = None
        self._thread = threading.Thread(target=self._run, name="web", daemon=True)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._server: Granian | None = None
        self._failure: Exception | None = None
        self._ended = threading.Event()
        self.port = place.port

    @property
    def url(self) -> str:
        """The server's own address."""
        scheme = "https" if self._place.tls else "http"
        host = f"[{self._place.host}]" if ":" in self._place.host else self._place.host
        return f"{scheme}://{host}:{self.port}"

    def start(self) -> None:
        """Begin to serve; returns once connections are taken. Raises ``ServerError``."""
        if not self._place.is_shared:
            self._claim = claimed(self._place)
            self.port = self._claim.getsockname()[1]
        self._thread.start()
        ends = self._clock.monotonic() + _START_S
        while not self._is_listening():
            if self._ended.wait(_LOOK_AGAIN_S) or self._clock.monotonic() > ends:
                why = self._failure or "it did not begin to listen"
                raise ServerError(f"{self.url} cannot be served: {why}")

    def stop(self, *, grace_s: float) -> bool:
        """Take no more connections and let running requests end; whether they did in time."""
        self._app.stop_taking()
        if self._loop is not None and self._server is not None and not self._ended.is_set():
            self._loop.call_soon_threadsafe(self._server.stop)
        is_ended = self._ended.wait(grace_s)
        if self._claim is not None:
            self._claim.close()
        return is_ended

    def _is_listening(self) -> bool:
        host = self._place.host
        reachable = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)  # noqa: S104 - compared
        try:
            socket.create_connection((reachable, self.port), timeout=1).close()
        except OSError:
            return False
        return True

    def _run(self) -> None:
        try:
            asyncio.run(self._serve())
        except Exception as error:  # noqa: BLE001 - told to whoever started it
            self._failure = error
        finally:
            self._ended.set()

    async def _serve(self) -> None:
        self._loop = asyncio.get_running_loop()
        tls = self._place.tls
        self._server = Granian(
            self._app,
            address=self._place.host,
            port=self.port,
            interface=Interfaces.ASGI,
            backlog=_BACKLOG,
            backpressure=_MOST_REQUESTS,
            websockets=False,
            http1_settings=HTTP1Settings(max_buffer_size=_HEADER_BYTES),
            log_enabled=False,
            ssl_cert=tls.cert_path if tls else None,
            ssl_key=tls.key_path if tls else None,
        )
        await self._server.serve()


def claimed(place: Place) -> socket.socket:
    """The address, taken for this process: the server's own sockets would share it with others.

    Raises ``ServerError`` if it is another's.
    """
    family = socket.AF_INET6 if ":" in place.host else socket.AF_INET
    probe = socket.socket(family, socket.SOCK_STREAM)
    try:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        probe.bind((place.host, place.port))
        port = probe.getsockname()[1]
        probe.close()
        claim = socket.socket(family, socket.SOCK_STREAM)
        claim.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        claim.bind((place.host, port))
    except OSError as error:
        probe.close()
        at = f"{place.host}:{place.port}"
        raise ServerError(f"{at} cannot be listened on: {error.strerror}") from error
    return claim

"""A small HTTP server on loopback: what the samples listen with."""

from __future__ import annotations

import os
import shutil
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import ClassVar, cast

_MAX_BODY_BYTES = 4 * 2**20
_PATIENCE_S = 60.0


class Exchange:
    """A request as it arrived, and the one answer to it."""

    def __init__(self, handler: BaseHTTPRequestHandler, body: bytes) -> None:
        self._handler = handler
        self.body = body
        self.method = handler.command
        self.target = handler.path
        self.headers = tuple((k.lower(), v) for k, v in handler.headers.raw_items())

    def header(self, name: str) -> str:
        """The value of a header, or ""."""
        return next((value for key, value in self.headers if key == name), "")

    def answer(
        self,
        status: int,
        body: bytes = b"",
        headers: Mapping[str, str] | None = None,
        *,
        length_bytes: int | None = None,
    ) -> None:
        """Answer whole; a ``length_bytes`` that is not the body's is claimed all the same."""
        handler = self._handler
        claimed = len(body) if length_bytes is None else length_bytes
        handler.send_response_only(status)
        for name, value in (headers or {}).items():
            handler.send_header(name, value)
        handler.send_header("content-length", str(claimed))
        if claimed != len(body):
            handler.close_connection = True
            handler.send_header("connection", "close")
        handler.end_headers()
        if self.method != "HEAD":
            handler.wfile.write(body)

    def answer_file(self, path: Path, headers: Mapping[str, str]) -> None:
        """Answer with a file, piece by piece."""
        handler = self._handler
        with path.open("rb") as file:
            handler.send_response_only(200)
            for name, value in headers.items():
                handler.send_header(name, value)
            handler.send_header("content-length", str(os.fstat(file.fileno()).st_size))
            handler.end_headers()
            if self.method != "HEAD":
                shutil.copyfileobj(file, handler.wfile)

    def drop(self) -> None:
        """Break the connection off without an answer."""
        self._handler.close_connection = True


Respond = Callable[[Exchange], None]


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server_version = "Laufzettel-sample"
    timeout = _PATIENCE_S
    disable_nagle_algorithm: ClassVar[bool] = True

    def _do(self) -> None:
        length = self.headers.get("content-length") or "0"
        if not length.isdecimal() or int(length) > _MAX_BODY_BYTES:
            self.send_error(413)
            self.close_connection = True
            return
        body = self.rfile.read(int(length))
        if len(body) < int(length):  # the sender broke off: there is no request to answer
            self.close_connection = True
            return
        with suppress(ConnectionError, TimeoutError):
            cast("_Server", self.server).respond(Exchange(self, body))

    do_GET = do_HEAD = do_POST = do_PUT = do_PATCH = _do  # noqa: N815 - the standard library's names

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the same
        """Say nothing: who embeds the server shows what counts."""


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128

    def __init__(self, address: tuple[str, int], respond: Respond) -> None:
        super().__init__(address, _Handler)
        self.respond = respond

    def handle_error(self, request: object, client_address: object) -> None:
        """Clients that go away are what the samples are about."""


class LoopbackServer:
    """Serves with ``respond`` on 127.0.0.1 from ``start`` to ``stop``; port 0 takes a free one."""

    def __init__(self, respond: Respond, *, port: int = 0) -> None:
        self._server = _Server(("127.0.0.1", port), respond)
        self._thread = threading.Thread(target=self._serve, name="sample-server", daemon=True)

    @property
    def port(self) -> int:
        """The port that is listened on."""
        return int(self._server.server_address[1])

    @property
    def host(self) -> str:
        """The address with its port, as it stands in ``hosts``."""
        return f"127.0.0.1:{self.port}"

    def url(self, path: str = "/") -> str:
        """The address of a path on this server."""
        return f"http://{self.host}{path}"

    def start(self) -> LoopbackServer:
        """Begin to serve; the port was bound before."""
        self._thread.start()
        return self

    def stop(self) -> None:
        """End, and free the port."""
        if self._thread.is_alive():
            self._server.shutdown()
        self._server.server_close()

    def _serve(self) -> None:
        self._server.serve_forever(poll_interval=0.05)

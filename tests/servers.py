"""Real servers on loopback that do what they are told, misbehaviour included."""

from __future__ import annotations

import socket
import ssl
import struct
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Received:
    """A request as it arrived, byte for byte."""

    method: str
    target: str
    headers: tuple[tuple[str, str], ...]
    body: bytes

    def header(self, name: str) -> str:
        return next((value for key, value in self.headers if key.lower() == name), "")


class Peer:
    """The connection that a handler answers on."""

    def __init__(self, sock: socket.socket, closing: threading.Event) -> None:
        self._sock = sock
        self._closing = closing
        self._buffer = b""

    def send(self, data: bytes) -> None:
        self._sock.sendall(data)

    def respond(
        self, status: int, body: bytes = b"", *, length: int | None = None, **headers: str
    ) -> None:
        """A whole answer, or with ``length`` one that claims another length."""
        size = len(body) if length is None else length
        lines = [f"HTTP/1.1 {status} X", f"content-length: {size}"]
        lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
        self.send(("\r\n".join(lines) + "\r\n\r\n").encode("latin-1") + body)

    def reset(self) -> None:
        """Break the connection off with a reset."""
        self._sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.close()

    def close(self) -> None:
        with suppress(OSError):
            self._sock.shutdown(socket.SHUT_RDWR)
        self._sock.close()

    def hang(self) -> None:
        """Say nothing until the server is closed."""
        self._closing.wait(60)

    def trickle(self, *, every_s: float, piece: bytes = b"x") -> None:
        """Send a little again and again, until the other side has had enough."""
        with suppress(OSError):
            while not self._closing.wait(every_s):
                self.send(piece)

    def flood(self, *, size_bytes: int) -> int:
        """Send much, and tell how much was taken before the other side closed."""
        sent, piece = 0, b"x" * 65536
        with suppress(OSError):
            while sent < size_bytes:
                sent += self._sock.send(piece)
        return sent

    def relay(self, port: int) -> None:
        """Carry bytes between the other side and a port, both ways, until one closes."""
        with socket.create_connection(("127.0.0.1", port)) as there:
            back = threading.Thread(target=_carry, args=(there, self._sock), daemon=True)
            back.start()
            _carry(self._sock, there)
            back.join(10)

    def receive(self) -> Received | None:
        """The next request; ``None`` when the other side closed."""
        while b"\r\n\r\n" not in self._buffer:
            if not self._more():
                return None
        head, _, self._buffer = self._buffer.partition(b"\r\n\r\n")
        first, *lines = head.decode("latin-1").split("\r\n")
        headers = tuple((n, v.strip()) for n, _, v in (line.partition(":") for line in lines))
        length = next((int(v) for n, v in headers if n.lower() == "content-length"), 0)
        while len(self._buffer) < length:
            if not self._more():
                return None
        body, self._buffer = self._buffer[:length], self._buffer[length:]
        method, target, _ = first.split(" ", 2)
        return Received(method, target, headers, body)

    def _more(self) -> bool:
        try:
            data = self._sock.recv(65536)
        except OSError:
            return False
        self._buffer += data
        return bool(data)


def _carry(source: socket.socket, target: socket.socket) -> None:
    with suppress(OSError):
        while data := source.recv(65536):
            target.sendall(data)
    with suppress(OSError):
        target.shutdown(socket.SHUT_WR)


Handler = Callable[[Received, Peer], None]


@dataclass
class Server:
    """A listening server; ``requests`` are what reached it, in order."""

    sock: socket.socket
    handler: Handler
    tls: ssl.SSLContext | None = None
    requests: list[Received] = field(default_factory=list)
    connections: int = 0
    closing: threading.Event = field(default_factory=threading.Event)
    port: int = 0

    def __post_init__(self) -> None:
        self.port = int(self.sock.getsockname()[1])

    @property
    def host(self) -> str:
        return f"127.0.0.1:{self.port}"

    def url(self, path: str = "/") -> str:
        return f"http{'s' if self.tls else ''}://{self.host}{path}"

    def accept(self) -> None:
        while True:
            try:
                sock, _ = self.sock.accept()
            except OSError:
                return
            self.connections += 1
            threading.Thread(target=self._serve, args=(sock,), daemon=True).start()

    def _serve(self, sock: socket.socket) -> None:
        # A client that goes away in the middle is what many of the cases are about.
        with suppress(OSError), sock, self._wrapped(sock) as wrapped:
            peer = Peer(wrapped, self.closing)
            while (request := peer.receive()) is not None:
                self.requests.append(request)
                self.handler(request, peer)

    def _wrapped(self, sock: socket.socket) -> socket.socket:
        return self.tls.wrap_socket(sock, server_side=True) if self.tls else sock


@contextmanager
def serving(handler: Handler, *, tls: ssl.SSLContext | None = None) -> Iterator[Server]:
    """A server with this handler, on a free port of 127.0.0.1."""
    sock = socket.create_server(("127.0.0.1", 0))
    server = Server(sock, handler, tls)
    thread = threading.Thread(target=server.accept, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.closing.set()
        with suppress(OSError):
            sock.shutdown(socket.SHUT_RDWR)
        sock.close()
        thread.join(10)


def in_turn(*handlers: Handler) -> Handler:
    """The first request goes to the first handler and so on; the last takes all the rest."""
    left, lock = list(handlers), threading.Lock()

    def handle(request: Received, peer: Peer) -> None:
        with lock:
            handler = left.pop(0) if len(left) > 1 else left[0]
        handler(request, peer)

    return handle


def answering(status: int, body: bytes = b"", **headers: str) -> Handler:
    """A handler that gives the same answer always."""

    def handle(request: Received, peer: Peer) -> None:
        peer.respond(status, body, **headers)  # type: ignore[arg-type]

    return handle


def closed_port() -> int:
    """A port of 127.0.0.1 where nobody listens."""
    with socket.create_server(("127.0.0.1", 0)) as sock:
        return int(sock.getsockname()[1])

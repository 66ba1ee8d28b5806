"""A load generator in a process of its own: many connections, signed requests, raw answers.

A tight loop over sockets, so that on the server's own cores it takes little from the server.
"""

from __future__ import annotations

import json
import select
import socket
import subprocess
import sys
import time
from collections import Counter, deque
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field
from pathlib import Path

from tests.benchmarks.deliveries import Wish, requests

ROOT = Path(__file__).parents[2]


@dataclass(frozen=True, slots=True)
class Load:
    """So many deliveries over so many connections; with a rate they come evenly, else at once."""

    port: int
    wish: Wish
    connections: int = 64
    rate_per_s: float = 0.0


@dataclass(frozen=True, slots=True)
class Told:
    """What the load generator saw."""

    began_s: float
    seconds: float
    cpu_s: float
    statuses: dict[str, int]
    latencies_ms: list[float] = field(repr=False)

    @property
    def per_s(self) -> float:
        return len(self.latencies_ms) / self.seconds

    def latency_ms(self, part: float) -> float:
        """The latency that this part of all answers did not exceed."""
        ordered = sorted(self.latencies_ms)
        return ordered[min(int(len(ordered) * part), len(ordered) - 1)]


@dataclass(slots=True)
class _Line:
    """A connection, and since when the request on it is under way."""

    sock: socket.socket
    since_s: float = 0.0
    buffer: bytes = b""


def apply(load: Load) -> Told:
    """Send it all from another process, and wait for the answers."""
    ended = subprocess.run(
        [sys.executable, "-m", "tests.benchmarks.client"],
        input=json.dumps({**asdict(load), "wish": asdict(load.wish)}),
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=110,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr
    return Told(**json.loads(ended.stdout))


def send_all(load: Load) -> Told:
    """Send it all from here."""
    with ExitStack() as opened:
        count = min(load.connections, load.wish.count)
        lines = [_Line(opened.enter_context(_connected(load.port))) for _ in range(count)]
        return _sent(load, lines, opened.enter_context(select.epoll()))


def _sent(load: Load, lines: list[_Line], poll: select.epoll) -> Told:
    waiting = deque(requests(load.wish))
    by_number = {line.sock.fileno(): line for line in lines}
    for number in by_number:
        poll.register(number, select.EPOLLIN)
    statuses: Counter[str] = Counter()
    latencies_ms: list[float] = []
    cpu_s, began_s = time.process_time(), time.monotonic()
    due = _due(began_s, load.rate_per_s, len(waiting))
    idle, left, next_s = lines[:], len(waiting), next(due, 0.0)
    while left:
        while waiting and idle and next_s <= time.monotonic():
            line = idle.pop()
            # Measured from when it was due: a server that stalls does not get fewer requests.
            line.since_s = next_s if load.rate_per_s else time.monotonic()
            line.sock.sendall(waiting.popleft())
            next_s = next(due, 0.0)
        pause_s = max(next_s - time.monotonic(), 0.0) if waiting and idle else 10.0
        for number, _ in poll.poll(pause_s):
            line = by_number[number]
            if status := _answered(line):
                statuses[status] += 1
                latencies_ms.append((time.monotonic() - line.since_s) * 1000)
                idle.append(line)
                left -= 1
    ended_s = time.monotonic()
    return Told(
        began_s, ended_s - began_s, time.process_time() - cpu_s, dict(statuses), latencies_ms
    )


def _due(began_s: float, rate_per_s: float, count: int) -> Iterator[float]:
    gap_s = 1 / rate_per_s if rate_per_s else 0.0
    return (began_s + number * gap_s for number in range(count))


def _connected(port: int) -> socket.socket:
    sock = socket.create_connection(("127.0.0.1", port))
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return sock


def _answered(line: _Line) -> str:
    """The status once the whole answer is there."""
    piece = line.sock.recv(65536)
    assert piece, "the server closed the connection"
    line.buffer += piece
    head, found, body = line.buffer.partition(b"\r\n\r\n")
    if not found or len(body) < _length(head):
        return ""
    line.buffer = b""
    return head[9:12].decode()


def _length(head: bytes) -> int:
    _, _, rest = head.lower().partition(b"content-length:")
    return int(rest.partition(b"\r\n")[0])


def main() -> None:
    given = json.load(sys.stdin)
    wish = Wish(**given.pop("wish"))
    json.dump(asdict(send_all(Load(wish=wish, **given))), sys.stdout)


if __name__ == "__main__":
    main()

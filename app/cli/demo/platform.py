"""A sample document platform: files with versions over HTTP, with the moods of real ones."""

from __future__ import annotations

import hashlib
import re
import threading
from collections import deque
from dataclasses import dataclass, field
from urllib.parse import quote, unquote

from app.cli.demo.journal import Journal
from app.cli.demo.serving import Exchange
from app.clock import Clock

_RANGE = re.compile(r"bytes=(\d*)-(\d*)")


@dataclass(frozen=True, slots=True)
class NotYet:
    """404: announced before it can be read."""


@dataclass(frozen=True, slots=True)
class Busy:
    """503 with ``Retry-After``."""

    retry_after: str = "1"


@dataclass(frozen=True, slots=True)
class Broken:
    """500."""


@dataclass(frozen=True, slots=True)
class Short:
    """A whole answer by its header, half of it in the body."""


@dataclass(frozen=True, slots=True)
class Slow:
    """The right bytes after a while."""

    wait_s: float = 1.0


Mood = NotYet | Busy | Broken | Short | Slow
Place = tuple[str, str]  # file and version


@dataclass(frozen=True, slots=True)
class Stored:
    """One version as the platform serves it."""

    content: bytes = field(repr=False)
    media_type: str
    sha256: str


class Platform:
    """Serves what was put into it, and writes down each download request before it answers."""

    def __init__(self, *, clock: Clock, journal: Journal | None = None) -> None:
        self._clock, self._journal = clock, journal
        self._stored: dict[Place, Stored] = {}
        self._moods: dict[Place, deque[Mood]] = {}
        self._lock = threading.Lock()
        self._closing = threading.Event()

    def put(self, file_id: str, version: str, content: bytes, *, media_type: str) -> Stored:
        """Offer a version of a file."""
        stored = Stored(content, media_type, hashlib.sha256(content).hexdigest())
        with self._lock:
            self._stored[file_id, version] = stored
        return stored

    def misbehave(self, file_id: str, version: str, *moods: Mood) -> None:
        """Meet the next requests for this version with these moods, one each."""
        with self._lock:
            self._moods.setdefault((file_id, version), deque()).extend(moods)

    def close(self) -> None:
        """Let go of the requests that wait."""
        self._closing.set()

    def respond(self, exchange: Exchange) -> None:
        """Take one download request."""
        place = _place(exchange.target)
        with self._lock:
            stored = self._stored.get(place)
            moods = self._moods.get(place)
            mood = moods.popleft() if moods and stored else None
        status = _status(mood, exchange, stored)
        self._record(place, exchange, status, mood)
        if stored is None:
            exchange.answer(404)
        else:
            self._served(exchange, stored, mood, status)

    def _served(self, exchange: Exchange, stored: Stored, mood: Mood | None, status: int) -> None:
        match mood:
            case NotYet() | Broken():
                exchange.answer(status)
            case Busy(retry_after=text):
                exchange.answer(status, headers={"retry-after": text})
            case Short():
                half = stored.content[: len(stored.content) // 2]
                headers = _headers(stored)
                exchange.answer(200, half, headers, length_bytes=len(stored.content))
            case Slow(wait_s=wait_s):
                self._clock.wait(self._closing, wait_s)
                _whole_or_part(exchange, stored, status)
            case None:
                _whole_or_part(exchange, stored, status)

    def _record(self, place: Place, exchange: Exchange, status: int, mood: Mood | None) -> None:
        if self._journal:
            self._journal.write(
                {
                    "kind": "download",
                    "at": self._clock.now().isoformat(),
                    "file_id": place[0],
                    "version": place[1],
                    "status": status,
                    "range": exchange.header("range"),
                    "mood": type(mood).__name__ if mood else "",
                }
            )


def path_of(file_id: str, version: str) -> str:
    """Where a version is served."""
    return f"/files/{quote(file_id, safe='')}/{quote(version, safe='')}"


def _place(target: str) -> Place:
    parts = target.partition("?")[0].split("/")
    if len(parts) != 4 or parts[1] != "files":
        return ("", "")
    return (unquote(parts[2]), unquote(parts[3]))


def _headers(stored: Stored) -> dict[str, str]:
    return {
        "content-type": stored.media_type,
        "etag": f'"{stored.sha256}"',
        "accept-ranges": "bytes",
    }


def _status(mood: Mood | None, exchange: Exchange, stored: Stored | None) -> int:
    if stored is None or isinstance(mood, NotYet):
        return 404
    if isinstance(mood, Busy):
        return 503
    if isinstance(mood, Broken):
        return 500
    if exchange.header("if-none-match") == f'"{stored.sha256}"':
        return 304
    span = _span(exchange, stored)
    if span is None:
        return 200
    return 206 if span[0] < span[1] else 416


def _span(exchange: Exchange, stored: Stored) -> tuple[int, int] | None:
    """The bytes asked for; ``None`` where the whole is. Empty: nothing lies there."""
    found = _RANGE.fullmatch(exchange.header("range"))
    condition = exchange.header("if-range")
    if found is None or (condition and condition != f'"{stored.sha256}"'):
        return None
    size, (first, last) = len(stored.content), found.groups()
    if not first:
        return (max(size - int(last), 0), size) if last else None
    return (int(first), min(int(last) + 1, size) if last else size)


def _whole_or_part(exchange: Exchange, stored: Stored, status: int) -> None:
    headers = _headers(stored)
    span = _span(exchange, stored)
    size = len(stored.content)
    if status == 206 and span is not None:
        headers["content-range"] = f"bytes {span[0]}-{span[1] - 1}/{size}"
        exchange.answer(206, stored.content[slice(*span)], headers)
    elif status == 416:
        exchange.answer(416, headers={"content-range": f"bytes */{size}"})
    elif status == 304:
        exchange.answer(304, headers=headers)
    else:
        exchange.answer(200, stored.content, headers)

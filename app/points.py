"""Named points at which a test may kill the process: the places where a crash would hurt.

A point may also fail instead, as the machine does there: a full disk, a store that cannot be read.

A point does nothing unless the process's own environment arms it inside a scratch area:

- ``LAUFZETTEL_SCRATCH=FOLDER`` names the scratch area; without it nothing can be armed.
- ``LAUFZETTEL_POINT=name[:count],...`` kills the process (SIGKILL) at the count-th passing;
  ``name[:count]=ENOSPC`` lets that passing fail with this errno.
- ``LAUFZETTEL_TRACE=1`` appends each passed point to ``points.trace`` in the scratch area.

No request and no configuration file can arm a point.
"""

from __future__ import annotations

import errno
import os
import signal
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

POINTS = (
    "migrate.commit.before",
    "migrate.commit.after",
    "hooks.body_read",
    "hooks.answer.before",
    "ledger.commit.before",
    "ledger.commit.after",
    "ledger.commit.answer_lost",
    "sequencer.commit.before",
    "sequencer.commit.after",
    "runner.claim.after",
    "runner.finish.before",
    "runner.finish.after",
    "outbound.connect.before",
    "outbound.connect.after",
    "download.request.before",
    "download.request.after",
    "download.body.begun",
    "download.body.after",
    "blobs.put.before",
    "blobs.put.after",
    "blobs.fsync.after",
    "blobs.delete.before",
    "blobs.delete.after",
    "notes.put.before",
    "notes.put.after",
    "restore.commit.before",
    "restore.commit.after",
    "restore.end.before",
    "restore.end.after",
    "move.commit.before",
    "move.commit.after",
    "notify.send.before",
    "notify.send.after",
    "notify.ask.before",
    "notify.ask.after",
    "changes.request.before",
    "changes.request.after",
    "changes.found.before",
    "changes.found.stored",
    "changes.cursor.kept",
)

_DECLARED = frozenset(POINTS)


class PointError(ValueError):
    """A point was passed or armed that ``POINTS`` does not declare."""


@dataclass(frozen=True, slots=True)
class _Entry:
    """A point that is armed: at which passing, and the errno there; 0 kills."""

    name: str
    count: int
    number: int


class Armed:
    """What the environment armed: how many passings are left, and where passings are written."""

    def __init__(self, entries: list[_Entry], trace: Path | None, kill: Callable[[], None]) -> None:
        self._entries = {entry.name: entry for entry in entries}
        self._left = {entry.name: entry.count for entry in entries}
        self._trace = trace
        self._kill = kill
        self._lock = threading.Lock()

    def passed(self, name: str) -> None:
        """Write the passing down, then die or fail if it was the last one allowed."""
        with self._lock:
            if self._trace is not None:
                _append(self._trace, f"{os.getpid()} {name}\n")
            if name not in self._left:
                return
            self._left[name] -= 1
            if self._left[name]:
                return
            if number := self._entries[name].number:
                raise OSError(number, os.strerror(number))
            self._kill()


def point(name: str) -> None:
    """Pass a named point; a no-op unless the environment armed it in a scratch area."""
    if name not in _DECLARED:
        raise PointError(f"point {name!r} is not declared in POINTS")
    armed = _of_this_process()
    if armed is not None:
        armed.passed(name)


def arm(environ: Mapping[str, str], *, kill: Callable[[], None]) -> Armed | None:
    """What an environment arms; ``None`` without a scratch area or without anything to do."""
    folder = environ.get("LAUFZETTEL_SCRATCH", "")
    if not folder or not Path(folder).is_dir():
        return None
    entries = [_entry(text) for text in environ.get("LAUFZETTEL_POINT", "").split(",") if text]
    trace = Path(folder) / "points.trace" if environ.get("LAUFZETTEL_TRACE") else None
    return Armed(entries, trace, kill) if entries or trace else None


@cache
def _of_this_process() -> Armed | None:
    return arm(os.environ, kill=_die)


def _entry(text: str) -> _Entry:
    place, _, failure = text.strip().partition("=")
    name, _, count = place.partition(":")
    if name not in _DECLARED:
        raise PointError(f"LAUFZETTEL_POINT names {name!r}, which is not declared in POINTS")
    number = getattr(errno, failure, 0)
    if failure and not number:
        raise PointError(f"LAUFZETTEL_POINT names {failure!r}, which is no errno")
    return _Entry(name, int(count or 1), number)


def _append(path: Path, line: str) -> None:
    # One write of an O_APPEND file: lines of several processes do not mix.
    descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    try:
        os.write(descriptor, line.encode())
    finally:
        os.close(descriptor)


def _die() -> None:
    # SIGKILL, not an exit: no handler, no flush, no finally may soften the crash.
    os.kill(os.getpid(), signal.SIGKILL)
    signal.pause()

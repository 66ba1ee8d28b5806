"""One comparison of the rows with the log at a time, beside everything else."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field, replace

from app.replay import Outcome, replay
from app.store.engine import Store
from app.telemetry import log

_MOST_SHOWN = 50


class _StoppingError(Exception):
    """The process is about to end; what was compared so far tells nothing."""


@dataclass(frozen=True, slots=True)
class Compared:
    """How far a comparison is, or what it found."""

    is_running: bool = True
    failed: bool = False
    done: int = 0
    total: int = 0
    events: int = 0
    streams: int = 0
    differing: int = 0
    differences: tuple[str, ...] = field(default=())


class Comparison:
    """Compares when it is asked to, and remembers the last result."""

    def __init__(self, store: Store, stopping: threading.Event) -> None:
        self._store = store
        self._stopping = stopping
        self._lock = threading.Lock()
        self._seen: Compared | None = None

    @property
    def seen(self) -> Compared | None:
        """The one that runs, else the last one; ``None`` before the first."""
        return self._seen

    def begin(self) -> bool:
        """Begin a comparison; whether one began, for there is only one at a time."""
        with self._lock:
            if self._seen is not None and self._seen.is_running:
                return False
            self._seen = Compared()
        threading.Thread(target=self._run, name="comparison", daemon=True).start()
        return True

    def _run(self) -> None:
        try:
            self._seen = _found(replay(self._store, progress=self._move))
        except _StoppingError:
            self._seen = Compared(is_running=False, failed=True)
        except Exception:
            log.exception("console.comparison.broken")
            self._seen = Compared(is_running=False, failed=True)

    def _move(self, done: int, total: int) -> None:
        if self._stopping.is_set():
            raise _StoppingError
        self._seen = replace(self._seen or Compared(), done=done, total=total)


def _found(outcome: Outcome) -> Compared:
    lines = [
        f"{d.table} {d.key} {d.column}: {d.live} / {d.folded}" for d in outcome.differences
    ] + [f"{aside.stream}" for aside in outcome.aside]
    return Compared(
        is_running=False,
        events=outcome.events,
        streams=outcome.streams,
        differing=outcome.differing + len(outcome.aside),
        differences=tuple(lines[:_MOST_SHOWN]),
    )

"""From due rows to wake-ups. The poll is the guarantee; a commit only makes it come sooner."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from app.clock import Clock
from app.store import queue
from app.store.engine import Connection, Store
from app.store.errors import StoreUnavailableError
from app.store.leases import WorkKind
from app.store.queue import Due, Excluded, Picture, Slots
from app.telemetry import log
from domain.recipes import Recipe
from jobs.runner.gate import Gate

POLL_S = 1.0
# A worker that has lived this long is no victim of a loop of restarts.
CALM_S = 2.0
# A wake-up that nobody has answered by then is taken for lost and sent again. One that was given
# away is never answered here: if its row is still due by then, nobody had a thread for it.
FORGOTTEN_S = 30.0
_GIVEN_AWAY_S = 2.0
_MOST_AT_ONCE = 64
# Every commit asks for a look: the first has it at once, and under load one look serves many.
_REST_S = 0.025

# Whether the wake-up stays in this process.
Wake = Callable[[str, WorkKind], bool]
Recipes = Callable[[], Iterable[tuple[str, Recipe]]]


@dataclass(frozen=True, slots=True)
class Parts:
    """What a relay works with. ``recipes`` are all that were ever pinned, by digest.

    ``transforming`` counts the transformations that run in this process, which has so many slots.
    """

    store: Store
    gate: Gate
    clock: Clock
    wake: Wake
    recipes: Recipes
    transform_slots: int
    transforming: Callable[[], int]
    kinds: frozenset[WorkKind]


@dataclass(frozen=True, slots=True)
class _Sent:
    """A wake-up under way."""

    due: Due
    at_s: float
    is_here: bool = True


class Relay:
    """Reads due work as far as there are free slots for it, and wakes it once."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self._began_s = parts.clock.monotonic()
        self._sent: dict[str, _Sent] = {}
        self._lock = threading.Lock()
        self._woken = threading.Event()
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._work, name="relay", daemon=True)

    def start(self) -> None:
        """Begin to look for due work."""
        self._thread.start()

    def stop(self) -> None:
        """Wake nothing any more."""
        self._stopping.set()
        self._woken.set()
        if self._thread.is_alive():
            self._thread.join()

    def look(self) -> None:
        """Look for due work soon; called after commits, it never blocks."""
        self._woken.set()

    def tried(self, work: str) -> None:
        """A claim was tried for this work: from now on its row and its lease tell what it is."""
        with self._lock:
            self._sent.pop(work, None)

    def _work(self) -> None:
        wait_s = 0.0
        while not self._stopping.is_set():
            self._parts.clock.wait(self._woken, wait_s)
            self._woken.clear()
            try:
                wait_s = self.round()
            except StoreUnavailableError as error:
                log.warning("relay.store.unavailable", reason=str(error))
                wait_s = POLL_S
            self._parts.clock.wait(self._stopping, _REST_S)

    def round(self) -> float:
        """Wake what is due and has a free slot; gives the seconds until the next look."""
        now = self._parts.clock.now()
        now_ms = int(now.timestamp() * 1000)
        self._forget()
        with self._parts.store.read() as connection:
            seen = queue.picture(connection, now_ms)
            found = list(self._due(connection, seen, now_ms)) if "all" not in seen.paused else []
            next_ms = queue.next_due_ms(connection, self._parts.gate.scopes, now_ms)
        for due in found:
            self._wake(due)
        until_due_s = POLL_S if next_ms is None else (next_ms - now_ms) / 1000
        return min(POLL_S, until_due_s, self._parts.gate.wait_s(seen, now_ms, longest_s=POLL_S))

    def _wake(self, due: Due) -> None:
        with self._lock:
            if due.id in self._sent:
                return
            self._sent[due.id] = _Sent(due, self._parts.clock.monotonic())
        if not self._parts.wake(due.id, due.kind):
            with self._lock:
                if due.id in self._sent:
                    self._sent[due.id] = _Sent(due, self._parts.clock.monotonic(), is_here=False)

    def _forget(self) -> None:
        now_s = self._parts.clock.monotonic()
        with self._lock:
            for work, sent in list(self._sent.items()):
                if sent.at_s < now_s - (FORGOTTEN_S if sent.is_here else _GIVEN_AWAY_S):
                    del self._sent[work]

    def _under_way(self, scope: str, kind: WorkKind) -> int:
        with self._lock:
            sent = [s.due for s in self._sent.values() if s.is_here]
        return sum(due.scope == scope and due.kind == kind for due in sent)

    # -- what is due ------------------------------------------------------------------------------

    def _due(self, connection: Connection, seen: Picture, now_ms: int) -> Iterator[Due]:
        excluded, kinds = self._excluded(seen.paused), self._parts.kinds
        for scope in self._parts.gate.scopes:
            if scope in seen.paused:
                continue
            if scope.startswith("destination:"):
                slots = self._slots(seen, scope, "message", now_ms)
                if slots is not None and "message" in kinds:
                    yield from queue.due_messages(connection, slots, now_ms, excluded.sources)
                continue
            slots = self._slots(seen, scope, "download", now_ms)
            if slots is not None and "download" in kinds:
                yield from queue.due_jobs(connection, "download", slots, now_ms, excluded)
            slots = self._transform_slots(scope)
            if slots.free > 0 and "transform" in kinds:
                yield from queue.due_jobs(connection, "transform", slots, now_ms, excluded)

    def _slots(self, seen: Picture, scope: str, kind: WorkKind, now_ms: int) -> Slots | None:
        gate = self._parts.gate
        free = min(gate.free(seen, scope, now_ms), gate.tokens(seen, scope, now_ms))
        under_way = self._under_way(scope, kind)
        # Those under way may be among the rows that are read: they are passed over, not counted.
        if free - under_way <= 0:
            return None
        return Slots(scope, min(free, _MOST_AT_ONCE), gate.terms(scope).ordered)

    def _transform_slots(self, scope: str) -> Slots:
        return Slots(scope, self._parts.transform_slots - self._parts.transforming())

    def _excluded(self, paused: frozenset[str]) -> Excluded:
        is_calm = self._parts.clock.monotonic() - self._began_s >= CALM_S
        if not paused:
            return Excluded(is_calm=is_calm)
        recipes = _named(paused, "recipe")
        return Excluded(
            sources=_named(paused, "source"),
            steps=_named(paused, "step"),
            recipes=frozenset(d for d, r in self._parts.recipes() if r.name in recipes),
            is_calm=is_calm,
        )


def _named(paused: frozenset[str], part: str) -> frozenset[str]:
    prefix = f"{part}:"
    return frozenset(what.removeprefix(prefix) for what in paused if what.startswith(prefix))

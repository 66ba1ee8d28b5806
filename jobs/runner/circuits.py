"""What ended attempts teach the breakers that all workers share."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from datetime import UTC, datetime

from app.store import breakers
from app.store.engine import Connection
from domain.breaker import BreakerPolicy, Closed, after, dump, load

# How long successes of a healthy scope may be kept back: a row that every end of every claim
# writes would be the slowest of all.
_KEPT_BACK_MS = 1_000


@dataclass(slots=True)
class _Healthy:
    """A closed circuit without a recent failure, and the successes that its row lacks.

    ``tried_ms`` is when its row was last written or was about to be.
    """

    tried_ms: int
    good: int = 0


@dataclass(frozen=True, slots=True)
class Lesson:
    """What one result taught, to be kept once its transaction has been committed.

    ``good`` are the successes that the row lacks now and did not before, below zero for those that
    it has got; ``is_healthy`` is ``None`` where the row was not written.
    """

    scope: str
    good: int
    at_ms: int
    is_healthy: bool | None


class Circuits:
    """Writes a failure at once, successes of a healthy scope once a second.

    A transaction may be run again or come to nothing, so what was counted in memory changes only
    behind its commit. Inside it a scope is at most taken for less healthy than it is, or for
    written although it is not: that costs a write, or a second.
    """

    def __init__(self) -> None:
        self._healthy: dict[str, _Healthy] = {}
        self._lock = threading.Lock()

    def learn(
        self,
        connection: Connection,
        scope: str,
        policy: BreakerPolicy,
        now_ms: int,
        *,
        is_success: bool,
    ) -> Lesson:
        """Let the scope's circuit know of one more result; called inside the transaction."""
        with self._lock:
            known = self._healthy.get(scope)
            if is_success and known is not None and now_ms - known.tried_ms < _KEPT_BACK_MS:
                return Lesson(scope, 1, now_ms, is_healthy=None)
            good = known.good if known else 0
            if known is not None:
                # Others of this transaction keep theirs back; after a failure they are written.
                known.tried_ms = now_ms if is_success else 0
        now = datetime.fromtimestamp(now_ms / 1000, UTC)
        circuit = load(policy, breakers.load(connection, scope, locked=True))
        for _ in range(good):
            circuit = after(circuit, success=True, now=now)
        circuit = after(circuit, success=is_success, now=now)
        breakers.save(connection, scope, dump(circuit), now_ms)
        is_healthy = isinstance(circuit.phase, Closed) and not circuit.phase.in_a_row
        return Lesson(scope, -good, now_ms, is_healthy=is_healthy)

    def keep(self, lesson: Lesson) -> None:
        """Keep what was learnt; called once after the commit."""
        with self._lock:
            known = self._healthy.get(lesson.scope)
            good = max((known.good if known else 0) + lesson.good, 0)
            if lesson.is_healthy is None:
                if known is not None:
                    known.good = good
            elif lesson.is_healthy:
                self._healthy[lesson.scope] = _Healthy(lesson.at_ms, good)
            else:
                self._healthy.pop(lesson.scope, None)

"""What ended attempts teach the breakers that all workers share."""

from __future__ import annotations

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
    """A closed circuit without a recent failure, and the successes that its row lacks."""

    saved_ms: int
    good: int = 0


class Circuits:
    """Writes a failure at once, successes of a healthy scope once a second."""

    def __init__(self) -> None:
        self._healthy: dict[str, _Healthy] = {}

    def learn(
        self,
        connection: Connection,
        scope: str,
        policy: BreakerPolicy,
        now_ms: int,
        *,
        is_success: bool,
    ) -> None:
        """Let the scope's circuit know of one more result; called inside the transaction."""
        healthy = self._healthy.get(scope)
        if is_success and healthy is not None and now_ms - healthy.saved_ms < _KEPT_BACK_MS:
            healthy.good += 1
            return
        now = datetime.fromtimestamp(now_ms / 1000, UTC)
        circuit = load(policy, breakers.load(connection, scope, locked=True))
        for _ in range(healthy.good if healthy else 0):
            circuit = after(circuit, success=True, now=now)
        circuit = after(circuit, success=is_success, now=now)
        breakers.save(connection, scope, dump(circuit), now_ms)
        self._healthy.pop(scope, None)
        if isinstance(circuit.phase, Closed) and not circuit.phase.in_a_row:
            self._healthy[scope] = _Healthy(now_ms)

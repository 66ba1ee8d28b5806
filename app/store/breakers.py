"""What the circuit breakers of all workers know together, one row a scope."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime

import sqlalchemy as sa

from app.store import projections, rows
from app.store import tables as t
from domain import breaker

_LOAD = sa.select(t.breakers.c.state).where(t.breakers.c.scope == sa.bindparam("wanted"))
_LOAD_ALL = sa.select(t.breakers.c.scope, t.breakers.c.state)
_LOCK = _LOAD.with_for_update()


def load(connection: sa.Connection, scope: str, *, locked: bool = False) -> str:
    """The state of this scope's circuit, "" for one that nothing is known of.

    ``locked``: no other worker changes it before the transaction ends.
    """
    found = rows.fetch(connection, _LOCK if locked else _LOAD, {"wanted": scope})
    return str(found[0][0], "utf-8") if found else ""


def load_all(connection: sa.Connection) -> Mapping[str, str]:
    """The state of every circuit, by scope."""
    return {scope: state.decode() for scope, state in rows.fetch(connection, _LOAD_ALL)}


def save(connection: sa.Connection, scope: str, state: str, now_ms: int) -> None:
    """Keep the state of this scope's circuit."""
    row = {"scope": scope, "state": state.encode(), "changed_ms": now_ms}
    projections.upsert(connection, t.breakers, [row])


def hasten(connection: sa.Connection, scope: str, now_ms: int) -> bool:
    """Let the next probe of an open circuit go now; ``False`` where the circuit is not open."""
    now = datetime.fromtimestamp(now_ms / 1000, UTC)
    # The policy is not in the row, and the moment of a probe does not depend on it.
    circuit = breaker.load(breaker.BreakerPolicy(), load(connection, scope, locked=True))
    if breaker.word(circuit, now) != "open":
        return False
    save(connection, scope, breaker.dump(breaker.hastened(circuit, now)), now_ms)
    return True

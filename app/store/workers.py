"""Which worker processes live: each writes down every few seconds that it does."""

from __future__ import annotations

import sqlalchemy as sa

from app.store import tables as t


def seen(connection: sa.Connection, owner: str, now_ms: int) -> None:
    """This worker lives."""
    mine = t.workers.c.owner == owner
    if not connection.execute(t.workers.update().where(mine).values(seen_ms=now_ms)).rowcount:
        row = {"owner": owner, "kind": "worker", "started_ms": now_ms, "seen_ms": now_ms}
        connection.execute(t.workers.insert().values(row))


def gone(connection: sa.Connection, owner: str, *, before_ms: int) -> None:
    """This worker stopped; those that nobody saw since a moment are forgotten with it."""
    old = t.workers.c.seen_ms < before_ms
    connection.execute(t.workers.delete().where(sa.or_(t.workers.c.owner == owner, old)))


def alive(connection: sa.Connection, since_ms: int) -> int:
    """How many were seen since a moment."""
    query = sa.select(sa.func.count()).where(t.workers.c.seen_ms >= since_ms)
    return int(connection.execute(query).scalar() or 0)

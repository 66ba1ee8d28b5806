"""How often in a row a destination refused for good what it was sent."""

from __future__ import annotations

import sqlalchemy as sa

from app.store import tables as t
from app.store.codec import decode_event
from app.store.rare import IS_RARE

_MOST_RESUMED = 100


def refused_in_a_row(connection: sa.Connection, scope: str, *, most: int) -> int:
    """The latest attempts of a scope that ended for good, since it was last resumed; to ``most``.

    What was in the way when an operator resumed it is not held against it a second time.
    """
    query = (
        sa.select(t.attempts.c.id, t.attempts.c.outcome)
        .where(t.attempts.c.scope == scope, t.attempts.c.ended_ms.is_not(None))
        .order_by(t.attempts.c.id.desc())
        .limit(most)
    )
    rows = connection.execute(query).all()
    if len(rows) < most or any(row.outcome != "dead" for row in rows):
        return next((n for n, row in enumerate(rows) if row.outcome != "dead"), len(rows))
    resumed = _resumed(connection, scope)
    return sum(row.id > resumed for row in rows)


def _resumed(connection: sa.Connection, scope: str) -> int:
    """The number of the event that last resumed this scope, or all; 0 for none."""
    query = (
        sa.select(t.events.c.id, t.events.c.body)
        .where(IS_RARE, t.events.c.type == "Resumed")
        .order_by(t.events.c.id.desc())
        .limit(_MOST_RESUMED)
    )
    for row in connection.execute(query):
        if getattr(decode_event(row.body, None).event, "what", "") == scope:
            return int(row.id)
    return 0

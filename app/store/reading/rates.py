"""How much came and was tried, minute by minute."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import sqlalchemy as sa

from app.store import tables as t

_MINUTE_MS = 60_000


@dataclass(frozen=True, slots=True)
class Tried:
    """The attempts that began in one minute and have ended."""

    ended: int
    failed: int
    took_ms: float


def accepted(connection: sa.Connection, since_ms: int, sources: Sequence[str]) -> dict[int, float]:
    """First deliveries of these sources by the minute since 1970 in which they were accepted."""
    minute = (t.receipts.c.accepted_ms // _MINUTE_MS).label("minute")
    query = sa.select(minute, sa.func.count()).where(
        t.receipts.c.source.in_(sources), t.receipts.c.accepted_ms >= since_ms
    )
    return {int(row[0]): float(row[1]) for row in connection.execute(query.group_by(minute))}


def attempts(connection: sa.Connection, since_ms: int, scopes: Sequence[str]) -> dict[int, Tried]:
    """Ended attempts of these scopes by the minute since 1970 in which they began."""
    minute = (t.attempts.c.started_ms // _MINUTE_MS).label("minute")
    is_done = sa.case((t.attempts.c.outcome == "done", 0), else_=1)
    took_ms = t.attempts.c.ended_ms - t.attempts.c.started_ms
    query = (
        sa.select(minute, sa.func.count(), sa.func.sum(is_done), sa.func.sum(took_ms))
        .where(
            t.attempts.c.scope.in_(scopes),
            t.attempts.c.started_ms >= since_ms,
            t.attempts.c.ended_ms.is_not(None),
        )
        .group_by(minute)
    )
    return {
        int(row[0]): Tried(int(row[1]), int(row[2] or 0), float(row[3] or 0))
        for row in connection.execute(query)
    }

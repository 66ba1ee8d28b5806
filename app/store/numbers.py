"""Rising numbers for rows: events, payloads, deliveries and attempts share them."""

from __future__ import annotations

from typing import Protocol

import sqlalchemy as sa

from app.store import tables as t

NUMBERED = (t.events.c.id, t.payloads.c.id, t.receipts.c.id, t.deliveries.c.id, t.attempts.c.id)


class Numbers(Protocol):
    """Gives numbers that were never given before."""

    def take(self, connection: sa.Connection, count: int) -> list[int]:
        """The next ``count`` numbers, rising."""
        ...


class OwnedNumbers:
    """The numbers of a store with one writer: counted in memory from the highest in use."""

    def __init__(self, connection: sa.Connection) -> None:
        ends = [connection.execute(sa.select(sa.func.max(c))).scalar() for c in NUMBERED]
        self._last = max(int(end or 0) for end in ends)

    def take(self, _: sa.Connection, count: int) -> list[int]:
        """The next ``count`` numbers; a rolled-back transaction leaves a gap."""
        first = self._last + 1
        self._last += count
        return list(range(first, self._last + 1))


class SequenceNumbers:
    """The numbers of a store with many writers: from a sequence of the database."""

    def take(self, connection: sa.Connection, count: int) -> list[int]:
        """The next ``count`` numbers; other writers' numbers may lie between them."""
        if not count:
            return []
        return sorted(connection.execute(_TAKE, {"count": count}).scalars())


_TAKE = sa.text("SELECT nextval('numbers') FROM generate_series(1, :count)")

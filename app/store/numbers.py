"""Rising numbers for rows: events, payloads, deliveries and attempts share them."""

from __future__ import annotations

from typing import Protocol

import sqlalchemy as sa

from app.store import rows
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
    """The numbers of a store with many writers: from a sequence of the database.

    A transaction may ``reserve`` the numbers that it is likely to need; what it leaves is never
    given, so that numbers rise with the time at which their transactions began.
    """

    def reserve(self, connection: sa.Connection, count: int) -> rows.Asked[None]:
        """Get so many for this transaction, in the place of what a former one left."""
        answer = rows.ask(connection, _TAKE, {"count": count})

        def kept() -> None:
            connection.info[_RESERVED] = sorted(number for (number,) in answer())

        return kept

    def take(self, connection: sa.Connection, count: int) -> list[int]:
        """The next ``count`` numbers; other writers' numbers may lie between them."""
        if not count:
            return []
        reserved: list[int] = connection.info.get(_RESERVED, [])
        if len(reserved) < count:
            return sorted(n for (n,) in rows.fetch(connection, _TAKE, {"count": count}))
        connection.info[_RESERVED] = reserved[count:]
        return reserved[:count]


_RESERVED = "numbers"
_TAKE = sa.text("SELECT nextval('numbers') FROM generate_series(1, :count)")

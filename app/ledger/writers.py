"""What differs between the backends when a batch is written: locks, numbers, order, recovery."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Protocol

import sqlalchemy as sa

from app.clock import Clock, Dice
from app.store import event_log, locks, rows
from app.store import tables as t
from app.store.numbers import Numbers, OwnedNumbers, SequenceNumbers

LOCK_TIMEOUT_MS = 2000
STATEMENT_TIMEOUT_MS = 5000
# Batch ids are looked up within seconds of a lost answer; an hour is far beyond that.
BATCHES_KEPT_MS = 3_600_000
CLEARED_EVERY_MS = 60_000
# Receipt, body, events, attempt: an accepted version takes six for its two streams.
NUMBERS_OF_A_STREAM = 6


class Writer(Protocol):
    """How one backend writes a batch."""

    @property
    def numbers(self) -> Numbers:
        """Numbers for the rows of a batch."""
        ...

    def connected(self, connection: sa.Connection) -> None:
        """A new connection was made: read what is counted in memory."""
        ...

    def begin(self, connection: sa.Connection, streams: Iterable[str]) -> int:
        """Lock the streams, before the first write; gives the time in milliseconds."""
        ...

    def place(self, connection: sa.Connection, bodies: Sequence[tuple[int, bytes]]) -> None:
        """Order the events of the batch in the log, or leave them to the sequencer."""
        ...

    def mark(self, connection: sa.Connection, now_ms: int) -> str:
        """Leave a mark by which a commit can be found whose answer is lost; "" for none."""
        ...

    def committed(self) -> None:
        """The transaction that ``place`` was called in has been committed."""
        ...

    def is_committed(self, connection: sa.Connection, mark: str, streams: Iterable[str]) -> bool:
        """Whether the batch with this mark was committed though nobody answered."""
        ...


class OwnedWriter:
    """SQLite: one writer, so nothing to lock, and positions and hashes are given inline."""

    def __init__(self, clock: Clock) -> None:
        self.numbers: OwnedNumbers
        self._clock = clock
        self._head = event_log.Head(0, b"")
        self._next = self._head

    def connected(self, connection: sa.Connection) -> None:
        """Read the head of the log and the highest numbers in use."""
        self._head = event_log.head(connection)
        self.numbers = OwnedNumbers(connection)

    def begin(self, _: sa.Connection, __: Iterable[str]) -> int:
        """The time; the transaction began with the only write lock there is."""
        return int(self._clock.now().timestamp() * 1000)

    def place(self, connection: sa.Connection, bodies: Sequence[tuple[int, bytes]]) -> None:
        """Give positions and hashes behind the head."""
        self._next = event_log.place(connection, self._head, bodies)

    def mark(self, _: sa.Connection, __: int) -> str:
        """No mark: a commit in this process has an answer or the process is gone."""
        return ""

    def committed(self) -> None:
        """The head has moved."""
        self._head = self._next

    def is_committed(self, _: sa.Connection, __: str, ___: Iterable[str]) -> bool:
        """Never in doubt."""
        return False


class SharedWriter:
    """PostgreSQL: streams are locked by advisory locks, the sequencer gives the positions.

    The locks are taken in a statement of their own, before the transaction has an xid. So of two
    transactions that share a stream the later one gets its xid after the earlier one committed:
    per stream the order of xids is the order of commits, which the sequencer relies on.
    """

    def __init__(self, dice: Dice) -> None:
        self.numbers = SequenceNumbers()
        self._dice = dice
        self._cleared_ms = 0

    def connected(self, connection: sa.Connection) -> None:
        """Nothing is counted in memory."""

    def begin(self, connection: sa.Connection, streams: Iterable[str]) -> int:
        """Bound the waits, lock the streams in the order of their keys, ask for the time."""
        wanted = set(streams)
        with rows.together(connection):
            rows.ask(connection, _BOUNDS)
            if wanted:
                locks.ask(connection, wanted)
            now = rows.ask(connection, _NOW)
            reserved = self.numbers.reserve(connection, 1 + NUMBERS_OF_A_STREAM * len(wanted))
        reserved()
        return int(now()[0][0])

    def place(self, connection: sa.Connection, bodies: Sequence[tuple[int, bytes]]) -> None:
        """Hand the events to the sequencer, with the transaction's xid."""
        rows.write(connection, _UNSEQUENCED, [{"event": number} for number, _ in bodies])

    def mark(self, connection: sa.Connection, now_ms: int) -> str:
        """A row under a fresh id: it is there exactly if the commit was."""
        mark = self._dice.salt().hex()
        rows.write(connection, _MARK, [{"id": mark, "at_ms": now_ms, "outcomes": b""}])
        if now_ms >= self._cleared_ms + CLEARED_EVERY_MS:
            self._cleared_ms = now_ms
            rows.write(connection, _CLEAR, [{"before_ms": now_ms - BATCHES_KEPT_MS}])
        return mark

    def committed(self) -> None:
        """Nothing is counted in memory."""

    def is_committed(self, connection: sa.Connection, mark: str, streams: Iterable[str]) -> bool:
        """Look the mark up, behind the same locks: the lost transaction has ended then."""
        with connection.begin():
            self.begin(connection, streams)
            query = sa.select(t.batches.c.id).where(t.batches.c.id == mark)
            return connection.execute(query).first() is not None


_NOW = sa.text("SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint")
_BOUNDS = sa.text(
    f"SELECT set_config('lock_timeout', '{LOCK_TIMEOUT_MS}', true), "
    f"set_config('statement_timeout', '{STATEMENT_TIMEOUT_MS}', true)"
)
_UNSEQUENCED = sa.text("INSERT INTO unsequenced (event, xid) VALUES (:event, pg_current_xact_id())")
_MARK = t.batches.insert()
_CLEAR = t.batches.delete().where(t.batches.c.at_ms < sa.bindparam("before_ms"))

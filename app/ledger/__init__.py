"""The only writer of truth and projections: takes requests, answers after the commit.

Group commit without a timer: a batch is what gathered during the last commit. The ends of claims
and other operational writes have a queue of their own, ahead of acceptance, or else leases would
lapse under load.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any, TypeVar

import sqlalchemy as sa

from app.clock import Clock, Dice
from app.ledger.batch import Batch, Setting, Unit
from app.ledger.book import Book
from app.ledger.requests import Answer, Finish, Request
from app.ledger.streams import streams_of
from app.ledger.writers import OwnedWriter, SharedWriter, Writer
from app.points import point
from app.store import rows
from app.store.engine import Store, is_lost, is_transient, translated
from app.store.errors import StoreError, StoreUnavailableError
from app.telemetry import log

MOST_UNITS = 256
LONGEST_QUEUE = 2048
MOST_REPEATS = 5

T = TypeVar("T")


class LedgerBusyError(StoreUnavailableError):
    """The queue is full: come again later."""


class LedgerClosedError(StoreUnavailableError):
    """The Ledger takes nothing any more: the process is stopping."""


@dataclass(slots=True)
class _Entry:
    """A unit or an operation, and who waits for it."""

    future: Future[Any]
    unit: Unit = ()
    operation: Callable[[sa.Connection, int], Any] | None = None
    then: Callable[[sa.Connection, int, tuple[Answer, ...]], Any] | None = None

    def fail(self, error: Exception) -> None:
        if not self.future.done():
            self.future.set_exception(error)


class Ledger:
    """Owns the writing connection and the thread that uses it.

    ``woken`` is called after each commit that may have made work due, ``committed`` after each with
    the number of requests and the seconds that it took; neither may block.
    """

    def __init__(self, store: Store, book: Book, clock: Clock, dice: Dice) -> None:
        self.book = book
        self.woken: Callable[[], None] = _nobody
        self.committed: Callable[[int, float], None] = _unheard
        self._store = store
        self._clock = clock
        self._dice = dice
        self._urgent: deque[_Entry] = deque()
        self._queue: deque[_Entry] = deque()
        self._changed = threading.Condition()
        self._is_open = False
        self._thread = threading.Thread(target=self._work, name="ledger", daemon=True)
        self._connection: sa.Connection | None = None
        is_owned = store.backend == "sqlite"
        self._writer: Writer = OwnedWriter(clock) if is_owned else SharedWriter(dice)

    def start(self) -> None:
        """Begin to take requests; raises ``StoreUnavailableError`` if the store cannot be read."""
        with translated():
            self._connect()
        self._is_open = True
        self._thread.start()

    def close(self) -> None:
        """Finish what was taken, then stop; whoever comes later is refused."""
        with self._changed:
            self._is_open = False
            self._changed.notify()
        if self._thread.is_alive():
            self._thread.join()
        self._disconnect()

    # -- what others call -------------------------------------------------------------------------

    def submit(self, *unit: Request) -> Future[tuple[Answer, ...]]:
        """Record these requests together; the future resolves after the commit, never before.

        It fails with ``StoreUnavailableError`` when they are not known to be stored. A refusal is
        an answer and ends the unit. Raises ``LedgerBusyError`` when too many wait already.
        """
        is_urgent = any(isinstance(request, Finish) for request in unit)
        entry = _Entry(Future(), unit=unit)
        self._enter(entry, is_urgent=is_urgent)
        return entry.future

    def conclude(
        self, unit: Unit, then: Callable[[sa.Connection, int, tuple[Answer, ...]], T]
    ) -> Future[tuple[tuple[Answer, ...], T]]:
        """Record these requests, and do an operational write that depends on the answers.

        Both are in one transaction: the write sees the rows that the requests made. It gets the
        connection, the time in milliseconds and the answers, and may be run again.
        """
        entry = _Entry(Future(), unit=unit, then=then)
        self._enter(entry, is_urgent=True)
        return entry.future

    def numbers(self, connection: sa.Connection, count: int) -> list[int]:
        """Numbers for rows, for an operational write in its own transaction."""
        return self._writer.numbers.take(connection, count)

    def recipe_name(self, connection: sa.Connection, digest: str) -> str:
        """The name of a recipe that may have been defined by another process; "" for none."""
        self.book.learn(connection, [digest])
        return self.book.recipes[digest].name if digest else ""

    def operate(self, operation: Callable[[sa.Connection, int], T]) -> T:
        """Run an operational write in the next transaction and wait for it.

        The operation gets the connection and the time in milliseconds, on the database's clock
        where there are several processes. It may be run again.
        """
        if self._store.backend != "sqlite":
            return self._operate_apart(operation)
        entry = _Entry(Future(), operation=operation)
        self._enter(entry, is_urgent=True)
        result: T = entry.future.result()
        return result

    def _operate_apart(self, operation: Callable[[sa.Connection, int], T]) -> T:
        """On PostgreSQL: at once, on a connection of its own."""
        with translated():
            return _again(lambda: self._operated(operation))

    def _operated(self, operation: Callable[[sa.Connection, int], T]) -> T:
        with self._store.writing.begin() as connection:
            return operation(connection, self._writer.begin(connection, ()))

    @property
    def is_open(self) -> bool:
        """Whether requests are taken."""
        return self._is_open

    @property
    def waiting(self) -> int:
        """How many requests wait for the next commit."""
        return len(self._queue) + len(self._urgent)

    def _enter(self, entry: _Entry, *, is_urgent: bool) -> None:
        with self._changed:
            if not self._is_open:
                raise LedgerClosedError("the process is stopping")
            if not is_urgent and len(self._queue) >= LONGEST_QUEUE:
                raise LedgerBusyError("too many requests wait to be stored")
            (self._urgent if is_urgent else self._queue).append(entry)
            self._changed.notify()

    # -- the thread -------------------------------------------------------------------------------

    def _work(self) -> None:
        while (entries := self._gather()) is not None:
            try:
                self._commit(entries)
            except Exception as error:
                log.exception("ledger.batch.broken")
                for entry in entries:
                    entry.fail(StoreUnavailableError(type(error).__name__))

    def _gather(self) -> list[_Entry] | None:
        """What has gathered since the last commit; ``None`` once closed and empty."""
        with self._changed:
            while not (self._urgent or self._queue):
                if not self._is_open:
                    return None
                self._changed.wait()
            entries = [self._urgent.popleft() for _ in range(min(len(self._urgent), MOST_UNITS))]
            free = MOST_UNITS - len(entries)
            entries += [self._queue.popleft() for _ in range(min(len(self._queue), free))]
            return entries

    def _commit(self, entries: list[_Entry]) -> None:
        """Commit the entries together; a defect or bad data in one must not hurt the others."""
        began_s = self._clock.monotonic()
        try:
            with translated():
                results = self._persist(entries)
        except StoreError as error:
            self._lost(entries, error)
        except Exception as error:
            if len(entries) == 1:
                log.exception("ledger.request.broken")
                entries[0].fail(error)
                return
            middle = len(entries) // 2
            self._commit(entries[:middle])
            self._commit(entries[middle:])
        else:
            self.committed(len(entries), self._clock.monotonic() - began_s)
            self._answer(entries, results)

    def _persist(self, entries: Sequence[_Entry]) -> list[Any]:
        """Transact, again after a deadlock, and find out what became of a lost commit."""
        return _again(lambda: self._transact(entries))

    def _transact(self, entries: Sequence[_Entry]) -> list[Any]:
        connection = self._connected()
        units = [e.unit for e in entries if e.operation is None]
        streams = {stream for unit in units for r in unit for stream in streams_of(r)}
        transaction = connection.begin()
        mark, results = "", []
        try:
            now_ms = self._writer.begin(connection, streams)
            done = [e.operation(connection, now_ms) if e.operation else None for e in entries]
            batch = Batch(connection, Setting(self.book, self._writer.numbers, self._dice), now_ms)
            answers = iter(batch.run(units))
            with rows.together(connection):
                batch.write()
                self._writer.place(connection, batch.numbered)
                mark = self._writer.mark(connection, now_ms)
            results = [
                _concluded(e, next(answers), connection, now_ms) if e.operation is None else result
                for e, result in zip(entries, done, strict=True)
            ]
            point("ledger.commit.before")
            transaction.commit()
        except BaseException as error:
            # What was counted in memory may be ahead of the database now.
            self._disconnect()
            if not (
                mark
                and is_lost(error)
                and self._writer.is_committed(self._connected(), mark, streams)
            ):
                raise
        self._writer.committed()
        point("ledger.commit.after")
        return results

    def _answer(self, entries: Sequence[_Entry], results: Sequence[Any]) -> None:
        point("ledger.commit.answer_lost")
        for entry, result in zip(entries, results, strict=True):
            # Who waited may have gone: a cancelled future takes no result.
            if entry.future.set_running_or_notify_cancel():
                entry.future.set_result(result)
        if any(entry.unit for entry in entries):
            self.woken()

    def _lost(self, entries: Sequence[_Entry], error: StoreError) -> None:
        log.warning("ledger.store.unavailable", reason=str(error), requests=len(entries))
        self._disconnect()
        for entry in entries:
            entry.fail(error)

    # -- the connection ---------------------------------------------------------------------------

    def _connected(self) -> sa.Connection:
        return self._connection or self._connect()

    def _connect(self) -> sa.Connection:
        connection = self._store.writing.connect()
        with connection.begin():
            self._writer.connected(connection)
        self._connection = connection
        return connection

    def _disconnect(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.invalidate()
            connection.close()


def _again(transaction: Callable[[], T]) -> T:
    """What the transaction gives; after a deadlock or a serialization failure the whole once more.

    The server broke it off for another's sake: nothing of it is stored, and nothing is wrong.
    """
    for _ in range(MOST_REPEATS):
        try:
            return transaction()
        except sa.exc.DBAPIError as error:
            if not is_transient(error):
                raise
    return transaction()


def _concluded(
    entry: _Entry, answers: tuple[Answer, ...], connection: sa.Connection, now_ms: int
) -> Any:
    return (answers, entry.then(connection, now_ms, answers)) if entry.then else answers


def _unheard(requests: int, seconds: float) -> None:
    """Nobody measures."""
    del requests, seconds


def _nobody() -> None:
    """Nobody waits for work."""

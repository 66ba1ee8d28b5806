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
import structlog

from app.clock import Clock, Dice
from app.ledger.batch import Batch, Setting, Unit
from app.ledger.book import Book
from app.ledger.requests import Answer, Finish, Request
from app.points import point
from app.store import event_log
from app.store.engine import Store, translated
from app.store.errors import StoreError, StoreUnavailableError
from app.store.numbers import OwnedNumbers

MOST_UNITS = 256
LONGEST_QUEUE = 2048

T = TypeVar("T")
log = structlog.get_logger(__name__)


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

    def fail(self, error: Exception) -> None:
        if not self.future.done():
            self.future.set_exception(error)


class Ledger:
    """Owns the writing connection and the thread that uses it.

    ``woken`` is called after each commit that may have made work due; it must not block.
    """

    def __init__(self, store: Store, book: Book, clock: Clock, dice: Dice) -> None:
        self.book = book
        self.woken: Callable[[], None] = _nobody
        self._store = store
        self._clock = clock
        self._dice = dice
        self._urgent: deque[_Entry] = deque()
        self._queue: deque[_Entry] = deque()
        self._changed = threading.Condition()
        self._is_open = False
        self._thread = threading.Thread(target=self._work, name="ledger", daemon=True)
        self._connection: sa.Connection | None = None
        self._setting: Setting | None = None
        self._head = event_log.Head(0, b"")

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

    def operate(self, operation: Callable[[sa.Connection, int], T]) -> T:
        """Run an operational write in the next transaction and wait for it.

        The operation gets the connection and the time in milliseconds. It may be run again.
        """
        entry = _Entry(Future(), operation=operation)
        self._enter(entry, is_urgent=True)
        result: T = entry.future.result()
        return result

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
        try:
            with translated():
                results = self._transact(entries)
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
            self._answer(entries, results)

    def _transact(self, entries: Sequence[_Entry]) -> list[Any]:
        connection, setting = self._connected()
        now_ms = int(self._clock.now().timestamp() * 1000)
        try:
            with connection.begin():
                results = [
                    e.operation(connection, now_ms) if e.operation else None for e in entries
                ]
                units = [e.unit for e in entries if e.operation is None]
                batch = Batch(connection, setting, now_ms)
                answers = iter(batch.run(units))
                head = batch.place(self._head)
                point("ledger.commit.before")
        except BaseException:
            # What was counted in memory may be ahead of the database now.
            self._disconnect()
            raise
        self._head = head
        point("ledger.commit.after")
        return [
            next(answers) if e.operation is None else r
            for e, r in zip(entries, results, strict=True)
        ]

    def _answer(self, entries: Sequence[_Entry], results: Sequence[Any]) -> None:
        point("ledger.commit.answer_lost")
        for entry, result in zip(entries, results, strict=True):
            entry.future.set_result(result)
        if any(entry.unit for entry in entries):
            self.woken()

    def _lost(self, entries: Sequence[_Entry], error: StoreError) -> None:
        log.warning("ledger.store.unavailable", reason=str(error), requests=len(entries))
        self._disconnect()
        for entry in entries:
            entry.fail(error)

    # -- the connection ---------------------------------------------------------------------------

    def _connected(self) -> tuple[sa.Connection, Setting]:
        if self._connection is None or self._setting is None:
            return self._connect()
        return self._connection, self._setting

    def _connect(self) -> tuple[sa.Connection, Setting]:
        connection = self._store.writing.connect()
        with connection.begin():
            self._head = event_log.head(connection)
            numbers = OwnedNumbers(connection)
        self._connection = connection
        self._setting = Setting(self.book, numbers, self._dice)
        return connection, self._setting

    def _disconnect(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.invalidate()
            connection.close()


def _nobody() -> None:
    """Nobody waits for work."""

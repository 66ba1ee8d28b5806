"""The thread that gives positions on PostgreSQL: one process leads, the others stand by."""

from __future__ import annotations

import threading
from collections.abc import Callable

from app.clock import Clock
from app.points import point
from app.store import sequencer
from app.store.engine import Store, translated
from app.store.errors import BrokenLogError, StoreError
from app.store.sequencer import Term
from app.telemetry import log

MOST_AT_ONCE = 2000
# Every commit asks for a look: the first has it at once, and under load one look places many.
REST_S = 0.025
# Between two looks while nothing is called in: followers see an event this late at the latest.
PATIENCE_S = 0.25
STANDBY_S = 5.0


class Sequencing:
    """Runs the sequencer while this process leads. ``placed`` is called when the log has grown."""

    def __init__(self, store: Store, owner: str, clock: Clock) -> None:
        self.placed: Callable[[], None] = lambda: None
        self._store = store
        self._owner = owner
        self._clock = clock
        self._changed = threading.Event()
        self._closing = threading.Event()
        self._term: Term | None = None
        self._renewed_s = 0.0
        self._thread = threading.Thread(target=self._work, name="sequencer", daemon=True)

    def start(self) -> None:
        """Begin to lead, or to stand by."""
        self._thread.start()

    def wake(self) -> None:
        """Something was committed in this process."""
        self._changed.set()

    def close(self) -> None:
        """Stop, and give the lead up."""
        self._closing.set()
        self._changed.set()
        if self._thread.is_alive():
            self._thread.join()

    def _work(self) -> None:
        while not self._closing.is_set():
            self._changed.clear()
            try:
                term = self._lead()
                wait_s = STANDBY_S if term is None else self._sequence(term)
            except BrokenLogError as error:
                log.exception("sequencer.log.broken", reason=str(error))
                wait_s = STANDBY_S
            except StoreError as error:
                log.warning("sequencer.store.unavailable", reason=str(error))
                wait_s = PATIENCE_S
            except Exception:
                log.exception("sequencer.broken")
                wait_s = STANDBY_S
            self._clock.wait(self._closing, REST_S)
            self._clock.wait(self._changed, wait_s)
        self._resign()

    def _lead(self) -> Term | None:
        """The term; written down again only when a third of its time has passed."""
        now_s = self._clock.monotonic()
        if self._term is None or now_s >= self._renewed_s + sequencer.LEASE_MS / 3000:
            with translated(), self._store.writing.begin() as connection:
                self._term = sequencer.lead(connection, self._owner)
            self._renewed_s = now_s
        return self._term

    def _sequence(self, term: Term) -> float:
        """Place what is final; gives how long to wait before the next look."""
        with translated(), self._store.writing.begin() as connection:
            placed = sequencer.sequence(connection, term, limit=MOST_AT_ONCE)
            point("sequencer.commit.before")
        point("sequencer.commit.after")
        if placed:
            self.placed()
        if placed is None:
            self._term = None
        return 0.0 if placed in {None, MOST_AT_ONCE} else PATIENCE_S

    def _resign(self) -> None:
        try:
            with translated(), self._store.writing.begin() as connection:
                term = sequencer.lead(connection, self._owner)
                if term is not None:
                    sequencer.resign(connection, term)
        except StoreError:
            log.info("sequencer.resign.failed")

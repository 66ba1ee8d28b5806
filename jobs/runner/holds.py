"""The leases of this process: renewed while the work goes on, and recalled when it should stop."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from typing import Literal

from app.clock import Clock
from app.ledger import Ledger
from app.store import leases
from app.store.engine import Connection, Store
from app.store.errors import StoreUnavailableError
from app.store.leases import Hold
from app.telemetry import log
from jobs.runner.claims import LEASE_MS, Claim
from jobs.tools import Cancelled

_ROUND_S = 0.5
_WATCH_MS = 500
_PROGRESS_MS = 2_000
_RENEW_MS = LEASE_MS // 3

Ending = Literal["recalled", "lost", "handed back"]


@dataclass(slots=True)
class Held:
    """One claim that is being carried out; ``written_ms`` is when its row was last touched.

    ``span`` is the trace context of this attempt, "" where no spans are kept.
    """

    claim: Claim
    clock: Clock
    written_ms: int
    until_ms: int
    done: int = 0
    total: int | None = None
    is_moved: bool = False
    ending: Ending | None = None
    span: str = ""

    def progress(self, done: int, total: int | None) -> Cancelled | None:
        """Note how far it is; tells the effect to stop once the work is not wanted here."""
        self.is_moved = self.is_moved or (done, total) != (self.done, self.total)
        self.done, self.total = done, total
        return Cancelled(self.ending or "the lease has lapsed") if self.is_over else None

    @property
    def is_over(self) -> bool:
        """Whether the right to go on is gone."""
        return self.ending is not None or now_ms(self.clock) >= self.until_ms


class Holds:
    """Keeps the leases of all claims of this process alive, with one write for all of them."""

    def __init__(self, ledger: Ledger, store: Store, clock: Clock) -> None:
        self._ledger = ledger
        self._store = store
        self._clock = clock
        self._held: dict[str, Held] = {}
        self._lock = threading.Lock()
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._work, name="holds", daemon=True)

    def start(self) -> None:
        """Begin to renew."""
        self._thread.start()

    def stop(self) -> None:
        """Renew no more."""
        self._stopping.set()
        if self._thread.is_alive():
            self._thread.join()

    def begin(self, claim: Claim) -> Held:
        """Keep this claim's lease alive from now on."""
        lease = claim.lease
        held = Held(claim, self._clock, lease.started_ms, lease.until_ms)
        with self._lock:
            self._held[lease.id] = held
        return held

    def end(self, held: Held) -> None:
        """The claim has ended."""
        with self._lock:
            if self._held.get(held.claim.lease.id) is held:
                del self._held[held.claim.lease.id]

    @property
    def current(self) -> tuple[Held, ...]:
        """What is being carried out now."""
        with self._lock:
            return tuple(self._held.values())

    def _work(self) -> None:
        while not self._clock.wait(self._stopping, _ROUND_S):
            try:
                self.round()
            except StoreUnavailableError as error:
                log.warning("leases.not_renewed", reason=str(error))

    def round(self) -> None:
        """Renew what needs it, write progress, and learn which jobs are to stop."""
        at_ms = now_ms(self._clock)
        due = [held for held in self.current if _needs_write(held, at_ms)]
        watched = [held for held in self.current if at_ms - held.claim.lease.started_ms > _WATCH_MS]
        if due:
            self._renew(due)
        if watched:
            self._recall(watched)

    def _renew(self, due: list[Held]) -> None:
        for held in due:
            held.is_moved = False

        def write(connection: Connection, at_ms: int) -> list[tuple[Held, int, bool]]:
            return [(held, at_ms, _is_renewed(connection, held, at_ms)) for held in due]

        for held, at_ms, is_ours in self._ledger.operate(write):
            if is_ours:
                held.written_ms, held.until_ms = at_ms, at_ms + LEASE_MS
            else:
                held.ending = "lost"

    def _recall(self, watched: list[Held]) -> None:
        with self._store.read() as connection:
            asked = leases.recalled(connection, [held.claim.lease.id for held in watched])
        for held in watched:
            if held.claim.lease.id in asked and held.ending is None:
                held.ending = "recalled"


def _is_renewed(connection: Connection, held: Held, at_ms: int) -> bool:
    lease = held.claim.lease
    hold = Hold(lease.owner, lease.incarnation, at_ms, LEASE_MS)
    return leases.renew(connection, lease, hold, held.done, held.total)


def _needs_write(held: Held, at_ms: int) -> bool:
    age_ms = at_ms - held.written_ms
    return age_ms >= _RENEW_MS or (held.is_moved and age_ms >= _PROGRESS_MS)


def now_ms(clock: Clock) -> int:
    """The present in milliseconds since 1970."""
    return int(clock.now().timestamp() * 1000)

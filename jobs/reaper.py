"""Ends the claims of those that never came back: a job is lost, a message unclear."""

from __future__ import annotations

import itertools
import threading
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from app.clock import Clock
from app.ledger import Ledger
from app.store import leases, slots, workers
from app.store.engine import Store
from app.store.errors import StoreUnavailableError
from app.store.leases import Lease
from app.telemetry import Metrics, log
from domain.commands import Lost
from jobs.runner import Result, finish_of
from jobs.runner.gate import Gate

_ROUND_S = 5.0
_MOST_AT_ONCE = 100
# In rounds: how often this process writes down that it lives.
_SIGN_OF_LIFE = 3
_FORGOTTEN_MS = 86_400_000


@dataclass(frozen=True, slots=True)
class Parts:
    """What a reaper works with."""

    ledger: Ledger
    store: Store
    gate: Gate
    clock: Clock
    metrics: Metrics
    owner: str


class Reaper:
    """Looks for lapsed leases; any number of them may work beside each other."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self._stopping = threading.Event()
        self._orphans: frozenset[tuple[str, str]] = frozenset()
        self._thread = threading.Thread(target=self._work, name="reaper", daemon=True)

    def start(self) -> None:
        """Begin to look."""
        self._thread.start()

    def stop(self) -> None:
        """Look no more."""
        self._stopping.set()
        if self._thread.is_alive():
            self._thread.join()
        owner = self._parts.owner
        with suppress(StoreUnavailableError):
            self._parts.ledger.operate(
                lambda c, now_ms: workers.gone(c, owner, before_ms=now_ms - _FORGOTTEN_MS)
            )

    def _work(self) -> None:
        owner = self._parts.owner
        for number in itertools.count():
            try:
                if number % _SIGN_OF_LIFE == 0:
                    self._parts.ledger.operate(lambda c, now_ms: workers.seen(c, owner, now_ms))
                while self.round() == _MOST_AT_ONCE:
                    pass
            except StoreUnavailableError as error:
                log.warning("reaper.store.unavailable", reason=str(error))
            if self._parts.clock.wait(self._stopping, _ROUND_S):
                return

    def round(self) -> int:
        """End what has lapsed; gives how many that were. A lease renewed meanwhile stays."""
        now_ms = int(self._parts.clock.now().timestamp() * 1000)
        with self._parts.store.read() as connection:
            found = leases.lapsed(connection, now_ms, limit=_MOST_AT_ONCE)
            orphans = slots.orphans(connection)
        # Found twice: a claim that is being made has a slot before others see its lease.
        if left := orphans & self._orphans:
            self._parts.ledger.operate(lambda connection, _: slots.end(connection, left))
        self._orphans = orphans - left
        for lease, answer in [(lease, self._end(lease)) for lease in found]:
            answer.result()
            log.warning("lease.lapsed", work_id=lease.id, owner=lease.owner, attempt=lease.attempt)
        self._parts.metrics.count("leases_lapsed", len(found))
        return len(found)

    def _end(self, lease: Lease) -> Future[Any]:
        terms = self._parts.gate.terms(lease.scope)
        return self._parts.ledger.submit(finish_of(lease, Result(Lost()), terms.retry))

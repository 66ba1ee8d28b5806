"""Deliveries that were turned away: counted, sampled, and never a way to fill the disk.

The first of a kind within a minute is recorded at once, those that follow are counted and recorded
as one row when the minute is over. What could not be stored waits for that row from the start: the
store is down. How many kinds a source may have in a minute is bounded, and numbers in a reason
make no kind: whoever chooses them, as anybody may with a clock, could bury all other reasons.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass, replace
from typing import Any

from app.ledger import Ledger
from app.ledger.requests import Note
from app.store.deliveries import Delivery
from app.store.errors import StoreUnavailableError
from app.telemetry import log

MOST_KINDS = 20
MINUTE_S = 60.0
_OTHERS = "of other kinds"

_NUMBER = re.compile(r"-?\d+")


@dataclass(frozen=True, slots=True)
class _Kind:
    """What is counted as one; deliveries that a secret proved have room of their own."""

    source: str
    is_proven: bool
    verdict: str
    reason: str


@dataclass(slots=True)
class _Counted:
    delivery: Delivery
    count: int = 0


class Refusals:
    """Counts refusals in memory and records them through the Ledger. Used from one event loop."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._counted: dict[_Kind, _Counted] = {}
        self._timer: asyncio.TimerHandle | None = None

    def add(self, delivery: Delivery) -> None:
        """Count a refusal; it never waits and never fails."""
        kind = _kind(delivery)
        if kind not in self._counted and self._rivals(kind) >= MOST_KINDS:
            delivery = replace(delivery, reason=_OTHERS, delivery_id=None)
            kind = _kind(delivery)
        found = self._counted.get(kind)
        if found is None:
            is_down = delivery.verdict == "failed"
            self._counted[kind] = _Counted(delivery, count=int(is_down))
            if not is_down:
                self._record(delivery)
        else:
            found.count += 1
            found.delivery = replace(delivery, delivery_id=None)
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(MINUTE_S, self.flush)

    def flush(self) -> None:
        """Record what was counted and begin a new minute."""
        if self._timer is not None:
            self._timer.cancel()
        self._timer = None
        counted, self._counted = self._counted, {}
        for found in counted.values():
            if found.count:
                self._record(replace(found.delivery, count=found.count))

    def _rivals(self, kind: _Kind) -> int:
        room = (kind.source, kind.is_proven)
        return sum(1 for other in self._counted if (other.source, other.is_proven) == room)

    def _record(self, delivery: Delivery) -> None:
        try:
            future = self._ledger.submit(Note(delivery))
        except StoreUnavailableError:
            log.warning("refusal.lost", source=delivery.source, verdict=delivery.verdict)
        else:
            future.add_done_callback(_noted(delivery))


def _kind(delivery: Delivery) -> _Kind:
    reason = _NUMBER.sub("N", delivery.reason)
    return _Kind(delivery.source, bool(delivery.key_id), delivery.verdict, reason)


def _noted(delivery: Delivery) -> Callable[[Future[Any]], None]:
    def note(future: Future[Any]) -> None:
        if future.exception() is not None:
            log.warning("refusal.lost", source=delivery.source, verdict=delivery.verdict)

    return note

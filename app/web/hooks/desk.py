"""What becomes of a delivery that was proven: read it, have it stored, say what came of it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Literal

from app.clock import Clock
from app.config import Source
from app.ledger import Ledger, LedgerBusyError, entries
from app.ledger.requests import Accept, Accepted, Conflicted, Repeated
from app.ledger.requests import Answer as LedgerAnswer
from app.store import receipts
from app.store.deliveries import Delivery, Verdict
from app.store.engine import Store
from app.store.errors import StoreUnavailableError
from app.telemetry import Metrics, Traces, is_debug_told, log
from app.web.hooks import answers
from app.web.hooks.answers import Answer, Told
from app.web.hooks.arrival import Arrival
from app.web.hooks.refusals import Refusals
from app.web.hooks.storing import Bell, settled
from app.web.problems import Problem
from domain import profiles, schemes
from domain.profiles import ContractBreach, Handshake, Mapped, Rejected
from domain.strict_json import InvalidJson

_BUSY_WAIT_S = 2
_STORE_WAIT_S = 5
_LINES = {
    "accepted": "delivery.accepted",
    "conflict": "delivery.conflict",
    "duplicate": "delivery.duplicate",
    "failed": "delivery.failed",
    "ignored": "delivery.ignored",
    "rejected": "delivery.rejected",
    "stale": "delivery.stale",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    """What the intake is made of. ``visit`` calls an address that a proven handshake names."""

    sources: Sequence[Source]
    public_url: str
    store: Store
    ledger: Ledger
    clock: Clock
    metrics: Metrics
    primitives: schemes.Primitives = field(default=schemes.NO_PRIMITIVES)
    visit: Callable[[str], None] | None = None
    traces: Traces = field(default_factory=Traces)


class Desk:
    """Takes proven deliveries. Used from one event loop."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self.refusals = Refusals(parts.ledger)
        self._bell = Bell()

    async def take(self, arrival: Arrival) -> Answer:
        """Read and store; ``failed`` answers say that it is not known to be stored."""
        try:
            return await self._taken(arrival)
        except LedgerBusyError:
            return self._failed(arrival.source, "busy", _BUSY_WAIT_S)
        except (StoreUnavailableError, TimeoutError):
            return self._failed(arrival.source, "unavailable", _STORE_WAIT_S)

    def refuse(
        self, source: Source, reason: str, verdict: Verdict = "rejected", *, key_id: str = ""
    ) -> None:
        """Count a delivery that was turned away; the reason is in words and holds no value.

        ``key_id`` is of the secret that proved it before its content was refused.
        """
        log.info(_LINES[verdict], source=source.name, reason=reason)
        refused = Delivery(
            source=source.name,
            verdict=verdict,
            received_ms=int(self._parts.clock.now().timestamp() * 1000),
            reason=reason,
            key_id=key_id,
        )
        self.refusals.add(refused)

    def _failed(
        self, source: Source, kind: Literal["busy", "unavailable"], retry_after_s: int
    ) -> Answer:
        self.refuse(source, "not stored in time" if kind == "unavailable" else "busy", "failed")
        return answers.unavailable(kind, retry_after_s=retry_after_s)

    async def _taken(self, arrival: Arrival) -> Answer:
        source = arrival.source
        reading = profiles.read(source.ready, arrival.request, arrival.received_at)
        match reading:
            case Mapped(events=()):
                return answers.bell(source.ready.profile.answer)
            case Mapped(events=found, is_batch=True):
                return await self._batch(arrival, found)
            case Mapped(events=found):
                return await self._single(arrival, found[0])
            case ContractBreach() as breach:
                return await self._breach(arrival, breach)
            case InvalidJson(reason=reason):
                self.refuse(source, reason, key_id=arrival.key_id)
                return answers.problem(Problem(400, "invalid-json", reason))
            case Handshake() as asked:
                return self._handshake(source, asked)

    def _handshake(self, source: Source, asked: Handshake) -> Answer:
        if asked.visit and self._parts.visit is not None:
            asyncio.get_running_loop().run_in_executor(None, self._parts.visit, asked.visit)
        elif asked.visit:
            log.warning("handshake.unvisited", source=source.name)
        return answers.handshake(asked)

    async def _single(self, arrival: Arrival, found: profiles.SourceEvent | Rejected) -> Answer:
        wanted = arrival.source.ready.profile.answer
        if isinstance(found, Rejected):
            return await self._breach(arrival, found.breach)
        (told,) = await self._stored(arrival, [entries.whole(arrival, found, arrival.request.body)])
        return answers.single(told, wanted)

    async def _breach(self, arrival: Arrival, breach: ContractBreach) -> Answer:
        # A known event gets its receipt also under a contract that has become stricter.
        body = arrival.request.body
        for event_id, is_known in (await self._told_ids(arrival)).values():
            if is_known:
                accept = entries.only_known(arrival, event_id, body)
                (told,) = await self._stored(arrival, [accept])
                return answers.single(told, arrival.source.ready.profile.answer)
        self.refuse(arrival.source, f"{breach.field} {breach.reason}", key_id=arrival.key_id)
        detail = f"{breach.field} {breach.reason}"
        return answers.problem(Problem(422, "event-contract", detail, {"field": breach.field}))

    async def _batch(
        self, arrival: Arrival, found: Sequence[profiles.SourceEvent | Rejected]
    ) -> Answer:
        accepts = {e.index: entries.item(arrival, e) for e in found if not isinstance(e, Rejected)}
        rejected = [e for e in found if isinstance(e, Rejected)]
        if rejected:
            known = await self._told_ids(arrival)
            again = [r for r in rejected if r.index in known and known[r.index][1]]
            for r in again:
                accepts[r.index] = entries.item_known(arrival, known[r.index][0], r.item)
            rejected = [r for r in rejected if r not in again]
        for entry in rejected:
            reason = f"entry {entry.index}: {entry.breach.field} {entry.breach.reason}"
            self.refuse(arrival.source, reason, key_id=arrival.key_id)
        told = await self._stored(arrival, list(accepts.values())) if accepts else []
        placed = dict(zip(accepts, told, strict=True))
        return answers.batch(placed, rejected, arrival.source.ready.profile.answer)

    async def _told_ids(self, arrival: Arrival) -> dict[int, tuple[str, bool]]:
        """The event id of each entry, and whether it is known: looked up before it is judged."""
        source = arrival.source
        ids = profiles.told_ids(source.ready, arrival.request, arrival.received_at)
        events = {arrival.event(event_id): event_id for event_id in ids if event_id}
        if not events:
            return {}
        look = asyncio.to_thread(self._known, list(events))
        known = await asyncio.wait_for(look, self._left_s(arrival))
        return {n: (i, arrival.event(i) in known) for n, i in enumerate(ids) if i}

    def _known(self, events: list[str]) -> frozenset[str]:
        with self._parts.store.read() as connection:
            return frozenset(receipts.find(connection, events))

    async def _stored(self, arrival: Arrival, accepts: Sequence[Accept]) -> list[Told]:
        """Submit and wait for the commit; raises ``TimeoutError`` when the source's time is up."""
        future = self._parts.ledger.submit(*accepts)
        if not await settled(future, self._bell, timeout_s=self._left_s(arrival)):
            raise TimeoutError
        outcomes = future.result()
        told = [Told(a.event_id, _outcome(o)) for a, o in zip(accepts, outcomes, strict=True)]
        for one in told:
            _say(arrival.source, one)
        return told

    def _left_s(self, arrival: Arrival) -> float:
        return max(arrival.deadline - self._parts.clock.monotonic(), 0.0)


def _outcome(answer: LedgerAnswer) -> answers.Outcome:
    if isinstance(answer, (Accepted, Repeated, Conflicted)):
        return answer
    raise TypeError(f"a delivery was answered with {type(answer).__name__}")


def _say(source: Source, told: Told) -> None:
    receipt = told.outcome.receipt
    word = receipt.verdict if isinstance(told.outcome, Accepted) else told.status
    # The log of events tells of first deliveries; a line of each would cost a third of its time.
    is_first = isinstance(told.outcome, Accepted)
    if not is_first or is_debug_told():
        say = log.debug if is_first else log.info
        say(_LINES[word], source=source.name, source_event=receipt.event)

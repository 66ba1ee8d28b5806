"""Moves campaigns: orders their messages at their pace, below what goes on live, and holds up."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain, zip_longest

from app.clock import Clock
from app.ledger import Ledger, LedgerClosedError
from app.ledger.requests import Answer, Control, Order
from app.store import campaigns, queue
from app.store.campaigns import Campaign, Item
from app.store.engine import Connection, Store
from app.store.errors import StoreUnavailableError
from app.store.queue import Picture
from app.telemetry import log
from domain.campaigns import Tally, is_held_up, may_go, rate_per_s, window
from domain.commands import Cause, Refusal, ResolveMessage
from domain.installation import CampaignEnded, Paused
from jobs.runner.gate import Gate

_IDLE_S = 1.0
_ROUND_S = 0.25
_LONGEST_ROUND_S = 5.0
# The looking itself is to take no more than this part of the time.
_SHARE = 20
_TURN_MS = 30_000
_CAUSE = Cause("system", "campaign")


@dataclass(frozen=True, slots=True)
class Parts:
    """What campaigns are moved with."""

    ledger: Ledger
    store: Store
    gate: Gate
    clock: Clock
    owner: str


class Campaigner:
    """Looks for campaigns; of several processes one at a time moves each."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self._stopping = threading.Event()
        self._round_s = _ROUND_S
        self._thread = threading.Thread(target=self._work, name="campaigns", daemon=True)

    def start(self) -> None:
        """Begin to look."""
        self._thread.start()

    def stop(self) -> None:
        """Order nothing any more; where each campaign stands is in the store."""
        self._stopping.set()
        if self._thread.is_alive():
            self._thread.join()

    def _work(self) -> None:
        wait_s = _IDLE_S
        while not self._parts.clock.wait(self._stopping, wait_s):
            try:
                wait_s = self.round()
            except LedgerClosedError:
                return
            except StoreUnavailableError as error:
                log.warning("campaign.store.unavailable", reason=str(error))
                wait_s = _IDLE_S

    def round(self) -> float:
        """Move every campaign on; gives the seconds until the next look."""
        began_s = self._parts.clock.monotonic()
        with self._parts.store.read() as connection:
            found = campaigns.live(connection)
            paused = queue.paused(connection) if found else frozenset()
        for campaign in found:
            if not self._stopping.is_set():
                self._move(campaign, is_paused=campaigns.what(campaign.id) in paused)
        if not found:
            return _IDLE_S
        took_s = self._parts.clock.monotonic() - began_s
        self._round_s = min(max(_ROUND_S, _SHARE * took_s), _LONGEST_ROUND_S)
        return self._round_s

    def _move(self, campaign: Campaign, *, is_paused: bool) -> None:
        if campaign.state == "gathering":
            self._gather(campaign)
            return
        self._settle(campaign)
        if is_paused:
            return
        with self._parts.store.read() as connection:
            tally = campaigns.tally(connection, campaign.id)
        if campaign.is_held:
            campaign = self._gone_on(campaign, tally)
        pace = campaign.plan.pace
        if tally.is_through:
            self._finish(campaign, tally)
        elif is_held_up(pace, tally, forgiven=campaign.forgiven):
            self._hold_up(campaign, tally)
        elif most := may_go(pace, tally, restarted=campaign.restarted):
            self._order(campaign, most)

    def _gather(self, campaign: Campaign) -> None:
        """Pin the messages that it is about, a page at a time, each only once."""

        def gather(connection: Connection, now_ms: int) -> Campaign | None:
            known = campaigns.one(connection, campaign.id)
            if known is None or known.state != "gathering":
                return None
            if self._has_turn(connection, campaign.id, now_ms):
                campaigns.gather(connection, known, now_ms)
                return known
            return None

        while not self._stopping.is_set() and self._parts.ledger.operate(gather):
            pass

    def _has_turn(
        self, connection: Connection, campaign: str, now_ms: int, pause_ms: int = 0
    ) -> bool:
        turn = (_TURN_MS, pause_ms)
        return campaigns.take_turn(connection, campaign, self._parts.owner, now_ms, turn=turn)

    def _settle(self, campaign: Campaign) -> None:
        """Note what became of those that were ordered."""
        with self._parts.store.read() as connection:
            changed = campaigns.unsettled(connection, campaign.id)
        if changed:
            self._parts.ledger.operate(lambda c, _: campaigns.settle(c, campaign.id, changed))

    def _gone_on(self, campaign: Campaign, tally: Tally) -> Campaign:
        """Somebody resumed it: what failed before is forgiven, and it is careful anew."""
        ordered, failed = tally.ordered, tally.failed
        self._parts.ledger.operate(
            lambda connection, now_ms: campaigns.change(
                connection, campaign.id, now_ms, is_held=0, restarted=ordered, forgiven=failed
            )
        )
        return replace(campaign, is_held=0, restarted=ordered, forgiven=failed)

    def _finish(self, campaign: Campaign, tally: Tally) -> None:
        event = CampaignEnded(
            at_ms=self._now_ms,
            campaign=campaign.id,
            outcome="finished",
            arrived=tally.arrived,
            failed=tally.failed,
        )

        def then(connection: Connection, now_ms: int, answers: tuple[Answer, ...]) -> None:
            if not isinstance(answers[0], Refusal):
                campaigns.change(connection, campaign.id, now_ms, state="finished")

        self._parts.ledger.conclude((Control(event, _CAUSE),), then).result()
        log.info("campaign.finished", campaign=campaign.id, count=tally.total)

    def _hold_up(self, campaign: Campaign, tally: Tally) -> None:
        """Pause it in nobody's name: that is an alert, until somebody resumes or stops it."""
        with self._parts.store.read() as connection:
            first = campaigns.failures(connection, campaign.id, limit=1)
        told = f", the first: {first[0].message} is {first[0].state}" if first else ""
        why = f"{tally.failed - campaign.forgiven} did not arrive{told}"
        event = Paused(at_ms=self._now_ms, what=campaigns.what(campaign.id), reason=why)

        def then(connection: Connection, now_ms: int, _: tuple[Answer, ...]) -> None:
            campaigns.change(connection, campaign.id, now_ms, is_held=1)

        self._parts.ledger.conclude((Control(event, _CAUSE),), then).result()
        log.warning("campaign.held_up", campaign=campaign.id, reason=why)

    def _order(self, campaign: Campaign, most: int) -> None:
        """Send the next ones again; a message that the order has reached before is not its own."""
        now_ms = self._now_ms
        if now_ms < campaign.next_ms:
            return
        items, slowest_per_s = self._next(campaign, most, now_ms)
        if not items:
            return
        pause_ms = round(len(items) / slowest_per_s * 1000)
        if not self._parts.ledger.operate(
            lambda connection, at_ms: self._has_turn(connection, campaign.id, at_ms, pause_ms)
        ):
            return
        futures = [
            self._parts.ledger.conclude((_order_of(campaign, item),), _marking(campaign, item))
            for item in items
        ]
        for future in futures:
            future.result()

    def _next(self, campaign: Campaign, most: int, now_ms: int) -> tuple[Sequence[Item], float]:
        """What may go now, fair between destinations, and the rate of the slowest of them."""
        gate, pace = self._parts.gate, campaign.plan.pace
        found: list[list[Item]] = []
        with self._parts.store.read() as connection:
            picture = queue.picture(connection, now_ms)
            under_way = campaigns.destinations(connection, campaign.id, "ordered")
            places = campaigns.destinations(connection, campaign.id, "open")
            limits = [gate.terms(f"destination:{place}").rate_per_s for place in places]
            slowest_per_s = min((rate_per_s(pace, limit) for limit in limits), default=1.0)
            at_once = max(1, int(slowest_per_s * self._round_s))
            for place in places:
                room = self._room(connection, place, under_way.get(place, 0), (picture, now_ms))
                if room > 0:
                    limit = min(room, most, at_once)
                    found.append(campaigns.open_items(connection, campaign.id, place, limit=limit))
        return list(_in_turn(found))[: min(most, at_once)], slowest_per_s

    def _room(
        self, connection: Connection, place: str, under_way: int, seen: tuple[Picture, int]
    ) -> int:
        """How many more may be under way at a destination, which may be cut off or have enough."""
        gate, scope = self._parts.gate, f"destination:{place}"
        picture, now_ms = seen
        if scope not in gate.scopes:
            return 1  # the order is refused, or the message waits, as any other of that name
        if gate.obstacle(picture, scope, now_ms):
            return 0
        is_busy = campaigns.is_busy(connection, place, now_ms, beside=under_way)
        return window(gate.terms(scope).concurrency, is_busy=is_busy) - under_way

    @property
    def _now_ms(self) -> int:
        return int(self._parts.clock.now().timestamp() * 1000)


def _order_of(campaign: Campaign, item: Item) -> Order:
    cause = Cause("operator", campaign.id, operator=campaign.operator, reason=campaign.reason)
    return Order(
        ResolveMessage(
            stream=item.stream,
            cause=cause,
            message=item.message,
            outcome="resend",
            force=campaign.plan.force,
            ordered_ms=campaign.made_ms,
        )
    )


def _marking(
    campaign: Campaign, item: Item
) -> Callable[[Connection, int, tuple[Answer, ...]], None]:
    """In the transaction of the order itself: one cannot be without the other."""

    def then(connection: Connection, _: int, answers: tuple[Answer, ...]) -> None:
        answer = answers[0]
        if isinstance(answer, Refusal):
            campaigns.mark(connection, campaign.id, item.place, "refused", why=answer.reason)
        else:
            campaigns.mark(connection, campaign.id, item.place, "ordered")

    return then


def _in_turn(found: Sequence[Sequence[Item]]) -> Iterator[Item]:
    """One of each, then the next of each."""
    return (item for item in chain(*zip_longest(*found)) if item is not None)

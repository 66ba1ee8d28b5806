"""Many messages sent again by one order: each once, at a pace, with a canary, over restarts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from app.clock import SettableClock
from app.compose import Base
from app.ledger.requests import Control
from app.store import campaigns
from app.store import tables as t
from app.store.campaigns import Campaign, Plan
from app.store.reading.work import WorkFilter
from domain.campaigns import Pace, Tally
from domain.commands import Cause
from domain.installation import Paused, Resumed
from jobs.campaigns import Campaigner, Parts
from tests import runtimes as r
from tests.outboxes import idle, pile_up
from tests.virtual import Outbox

START = datetime(2026, 11, 30, tzinfo=UTC)
COUNT = 30
OPERATOR = Cause("operator", "tok_1", operator="zoë", reason="they lost a day")


@contextmanager
def delivered(folder: Path, count: int = COUNT, erp: str = "") -> Iterator[Outbox]:
    """An outbox from which everything has been delivered once."""
    clock = SettableClock(START)
    config = r.configured(
        folder,
        source="127.0.0.1:1",
        destination="http://127.0.0.1:2/",
        recipe="transforms = []",
        erp=erp,
    )
    with idle(config, clock=clock) as base:
        made = Outbox(base, clock)
        try:
            pile_up(base.ledger, [f"F-{n}" for n in range(count)])
            made.pass_until(60)
            assert len(made.receiver.seen) == count
            yield made
        finally:
            made.close()


def begin(base: Base, pace: Pace, campaign: str = "cmp_1", **wanted: Any) -> str:
    def order(connection: Any, now_ms: int) -> None:
        plan = Plan(WorkFilter(until_ms=now_ms, **wanted), pace)
        made = Campaign(campaign, "gathering", "zoë", "they lost a day", plan, now_ms, now_ms)
        campaigns.begin(connection, made)

    base.ledger.operate(order)
    return campaign


def mover(made: Outbox, owner: str = "one") -> Campaigner:
    base = made.base
    return Campaigner(Parts(base.ledger, base.store, made.gate, made.clock, owner))


def move(made: Outbox, *movers: Campaigner, until: Callable[[], bool]) -> None:
    """Let campaigns and sending go on, a quarter of a second at a time."""
    for _ in range(4000):
        if until():
            return
        for each in movers:
            each.round()
        made.pass_until(made.clock.monotonic() + 0.25)
    raise AssertionError("it did not come about")


def found(base: Base, campaign: str = "cmp_1") -> Campaign:
    with base.store.read() as connection:
        one = campaigns.one(connection, campaign)
    assert one is not None
    return one


def tally(base: Base, campaign: str = "cmp_1") -> Tally:
    with base.store.read() as connection:
        return campaigns.tally(connection, campaign)


def paused(base: Base) -> list[Any]:
    return r.rows(base.store, t.controls)


def again(made: Outbox) -> Counter[str]:
    """How often each was sent behind its first delivery."""
    return Counter(each.id for each in made.receiver.seen) - Counter(
        {each.id: 1 for each in made.receiver.seen}
    )


@pytest.mark.req("F2", "E2")
def test_each_message_is_sent_again_once_with_its_bytes_within_rate_and_slots(
    tmp_path: Path,
) -> None:
    with delivered(tmp_path, erp="concurrency = 8") as made:
        first = {each.id: each.body for each in made.receiver.seen}
        begin(made.base, Pace(rate_per_s=4.0, is_careful=False), name="erp")
        began_s = made.clock.monotonic()
        # Two processes beside each other: one at a time moves a campaign.
        move(
            made, mover(made, "one"), mover(made, "two"),
            until=lambda: found(made.base).state == "finished",
        )  # fmt: skip
        seen = made.receiver.seen[COUNT:]
        took_s = made.clock.monotonic() - began_s
        events = [row.type for row in r.rows(made.base.store, t.events)]
    assert {each.id: each.body for each in seen} == first
    assert len(seen) == COUNT
    assert took_s >= COUNT / 4 - 1
    assert max(Counter(each.step for each in seen).values()) <= 2, "a quarter of the slots"
    assert events.count("MessageResolved") == COUNT
    assert events.count("CampaignEnded") == 1


@pytest.mark.req("F2")
def test_a_failure_of_the_canary_holds_it_up_and_a_resume_begins_carefully_anew(
    tmp_path: Path,
) -> None:
    with delivered(tmp_path) as made:
        third = made.receiver.seen[2].id
        made.receiver.refused.add(third)
        begin(made.base, Pace(rate_per_s=1000))
        move(made, mover(made), until=lambda: bool(paused(made.base)))
        (pause,) = paused(made.base)
        held = tally(made.base)
        made.receiver.refused.clear()
        resumed = Resumed(at_ms=0, what=pause.what)
        made.base.ledger.submit(Control(resumed, OPERATOR)).result()
        move(made, mover(made), until=lambda: found(made.base).state == "finished")
        end = tally(made.base)
    assert (pause.what, pause.operator) == ("campaign:cmp_1", "")
    assert pause.reason == f"1 did not arrive, the first: {third} is dead"
    # One, then ten at most: the failure lay among them.
    assert 0 < held.ordered <= 11
    assert (end.arrived, end.failed, end.open) == (COUNT - 1, 1, 0)
    assert sum(again(made).values()) == COUNT


@pytest.mark.req("F2")
def test_a_campaign_goes_on_after_a_restart_with_those_that_it_was_about(tmp_path: Path) -> None:
    with delivered(tmp_path) as made:
        begin(made.base, Pace(rate_per_s=8, is_careful=False))
        move(made, mover(made, "before"), until=lambda: tally(made.base).arrived >= 5)
        # What comes in meanwhile is none of it, and what was there before the crash is not lost.
        pile_up(made.base.ledger, ["new"])
        made.clock.advance(60)
        move(made, mover(made, "after"), until=lambda: found(made.base).state == "finished")
        end = tally(made.base)
    assert (end.total, end.arrived) == (COUNT, COUNT)
    assert set(again(made).values()) == {1}


@pytest.mark.req("F2", "E10")
def test_live_messages_go_first_and_a_part_that_is_cut_off_is_waited_for(tmp_path: Path) -> None:
    with delivered(tmp_path, erp="concurrency = 4") as made:
        begin(made.base, Pace(rate_per_s=1000, is_careful=False))
        mine = mover(made)
        move(made, mine, until=lambda: tally(made.base).arrived > 0)
        pile_up(made.base.ledger, [f"live-{n}" for n in range(8)])
        before = len(made.receiver.seen)
        mine.round()
        for _ in range(3):
            made.step()
            made.clock.advance(0.05)
        live = [b'"live-' in each.body for each in made.receiver.seen[before:]]
        pause = Paused(at_ms=0, what="destination:erp", reason="they asked")
        made.base.ledger.submit(Control(pause, OPERATOR)).result()
        mine.round()
        ordered = tally(made.base).ordered
        for _ in range(20):
            made.clock.advance(1)
            mine.round()
        assert tally(made.base).ordered == ordered, "it waits for what is paused"
    assert sum(live) == 8
    assert live.count(False) <= 2


@pytest.mark.req("F2")
def test_what_was_sent_again_since_the_order_is_not_sent_once_more(tmp_path: Path) -> None:
    with delivered(tmp_path, 3) as made:
        begin(made.base, Pace(is_careful=False), "cmp_1")
        begin(made.base, Pace(is_careful=False), "cmp_2")
        both = ("cmp_1", "cmp_2")
        move(
            made, mover(made),
            until=lambda: {found(made.base, name).state for name in both} == {"finished"},
        )  # fmt: skip
        ends = [tally(made.base, name) for name in both]
        with made.base.store.read() as connection:
            why = campaigns.refusals(connection, "cmp_2")
    assert sum(end.arrived for end in ends) == 3 == sum(end.refused for end in ends)
    assert set(why) <= {"it was sent again since the order was given", "already queued"}
    assert sum(again(made).values()) == 3

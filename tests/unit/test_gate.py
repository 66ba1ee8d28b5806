"""The gate of a scope: slots, pauses, waits, breakers and rates, without a store."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from app.clock import SettableClock
from app.store.queue import Picture
from domain.breaker import Breaker, BreakerPolicy, after, dump
from jobs.runner.gate import Gate
from jobs.runner.terms import Terms

NOW = datetime(2026, 11, 30, 10, tzinfo=UTC)
NOW_MS = int(NOW.timestamp() * 1000)
POLICY = BreakerPolicy(consecutive=1, open_s=30)
ERP = "destination:erp"


def gate(clock: SettableClock | None = None, **terms: float) -> Gate:
    made = Terms(concurrency=4, breaker=POLICY, **terms)  # type: ignore[arg-type]
    return Gate({ERP: made}, clock or SettableClock(NOW))


def free(**picture: object) -> int:
    return gate().free(Picture(**picture), ERP, NOW_MS)  # type: ignore[arg-type]


@pytest.mark.req("E10")
def test_the_slots_are_those_that_nobody_uses() -> None:
    assert free() == 4
    assert free(running={ERP: 3, "destination:crm": 9}) == 1
    assert free(running={ERP: 6}) == -2


@pytest.mark.req("F2")
@pytest.mark.parametrize("what", ["all", ERP])
def test_under_a_pause_nothing_may_begin_nor_may_a_claim_stand(what: str) -> None:
    assert free(paused=frozenset({what})) < 0
    assert free(paused=frozenset({what}), running={ERP: 1}) < 0
    assert free(paused=frozenset({"destination:crm"})) == 4


@pytest.mark.req("E4")
def test_while_a_wait_holds_nothing_may_begin() -> None:
    assert free(waits={ERP: NOW_MS + 1}) < 0


@pytest.mark.req("E6")
def test_an_open_breaker_lets_none_through_and_then_one() -> None:
    opened = dump(after(Breaker(POLICY), success=False, now=NOW))
    seen = Picture(breakers={ERP: opened})
    assert gate().free(seen, ERP, NOW_MS) == 0
    assert gate().free(seen, ERP, NOW_MS + 30_000) == 1


def test_work_of_an_unknown_scope_has_no_limit_of_its_own() -> None:
    assert gate().free(Picture(running={"step:ocr": 50}), "step:ocr", NOW_MS) > 1000


@pytest.mark.req("E10")
def test_a_rate_lets_so_many_begin_in_any_second_and_no_more() -> None:
    clock = SettableClock(NOW)
    limited = gate(clock, rate_per_s=2.0)
    assert [limited.take_token(ERP) for _ in range(3)] == [True, True, False]
    assert limited.tokens(ERP) == 0
    clock.advance(0.75)
    assert not limited.take_token(ERP)
    assert limited.wait_s(longest_s=1.0) == 0.25
    clock.advance(0.25)
    assert [limited.take_token(ERP) for _ in range(3)] == [True, True, False]
    clock.advance(100)
    assert limited.tokens(ERP) == 2
    assert limited.wait_s(longest_s=1.0) == 1.0

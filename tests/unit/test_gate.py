"""The gate of a scope: slots, pauses, waits, breakers and rates, without a store."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from app.store.queue import Picture
from domain.breaker import Breaker, BreakerPolicy, after, dump
from domain.rates import Rate, begun
from domain.rates import dump as dump_rate
from jobs.runner.gate import Gate
from jobs.runner.terms import Terms

NOW = datetime(2026, 11, 30, 10, tzinfo=UTC)
NOW_MS = int(NOW.timestamp() * 1000)
POLICY = BreakerPolicy(consecutive=1, open_s=30)
ERP = "destination:erp"


def gate(**terms: float) -> Gate:
    made = Terms(concurrency=4, breaker=POLICY, **terms)  # type: ignore[arg-type]
    return Gate({ERP: made})


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
def test_a_rate_that_is_used_up_lets_none_begin_until_it_is_free() -> None:
    began = dump_rate(begun(begun(Rate(2.0), NOW_MS), NOW_MS + 750))
    seen, limited = Picture(rates={ERP: began}), gate(rate_per_s=2.0)
    assert limited.tokens(seen, ERP, NOW_MS + 750) == 0
    assert limited.wait_s(seen, NOW_MS + 750, longest_s=1.0) == 0.251
    assert limited.tokens(seen, ERP, NOW_MS + 1001) == 1
    assert limited.tokens(Picture(), ERP, NOW_MS) == 2
    assert limited.wait_s(Picture(), NOW_MS, longest_s=1.0) == 1.0
    assert gate().tokens(seen, ERP, NOW_MS) == 4

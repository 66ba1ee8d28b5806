from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.breaker import UNLIMITED, Breaker, BreakerPolicy, after, allows, dump, load, word

NOW = datetime(2026, 11, 30, 10, 15, 30, tzinfo=UTC)


def at(seconds: float) -> datetime:
    return NOW + timedelta(seconds=seconds)


def told(results: str, *, breaker: Breaker | None = None, start: float = 0) -> Breaker:
    breaker = breaker or Breaker()
    for number, result in enumerate(results):
        breaker = after(breaker, result == "+", at(start + number / 1000))
    return breaker


@pytest.mark.req("E6")
def test_it_opens_after_five_failures_in_a_row() -> None:
    assert allows(told("----"), at(1)) == UNLIMITED
    assert allows(told("-----"), at(1)) == 0


@pytest.mark.req("E6")
def test_a_success_between_starts_the_row_anew() -> None:
    assert allows(told("++++----+----"), at(1)) == 0  # by rate: eight of thirteen
    assert allows(told("++++++++----+----"), at(1)) == UNLIMITED


@pytest.mark.req("E6")
def test_it_opens_at_half_failures_among_ten() -> None:
    assert word(told("+-+-+-+-+"), at(1)) == "closed"
    assert word(told("+-+-+-+-+-"), at(1)) == "open"


def test_results_older_than_the_window_are_forgotten() -> None:
    old = told("+-+-+-+-")
    assert word(told("+-+-", breaker=old, start=61), at(62)) == "closed"
    assert word(told("+-+-", breaker=old, start=30), at(31)) == "open"


@pytest.mark.req("E6")
def test_after_its_time_exactly_one_probe_may_go() -> None:
    opened = told("-----")
    assert allows(opened, at(29)) == 0
    assert (allows(opened, at(31)), word(opened, at(31))) == (1, "half-open")


@pytest.mark.req("E6")
def test_a_failed_probe_opens_it_for_longer_up_to_a_bound() -> None:
    breaker, now = told("-----"), 31.0
    spans = []
    for _ in range(8):
        breaker = after(breaker, False, at(now))
        span = next(s for s in range(10_000) if allows(breaker, at(now + s)))
        spans.append(span)
        now += span
    assert spans == [60, 120, 240, 480, 480, 480, 480, 480]


@pytest.mark.req("E6")
def test_success_returns_gradually_and_closes() -> None:
    breaker, limits = told("-----"), []
    for number in range(7):
        breaker = after(breaker, True, at(31 + number))
        limits.append(allows(breaker, at(31 + number)))
    assert limits == [2, 4, 8, 16, 32, 64, UNLIMITED]
    assert word(breaker, at(40)) == "closed"


@pytest.mark.req("E6")
def test_a_failure_on_the_way_back_opens_again() -> None:
    returning = told("++", breaker=told("-----"), start=31)
    assert word(returning, at(32)) == "returning"
    assert allows(told("-", breaker=returning, start=33), at(34)) == 0


def test_results_of_tries_begun_before_it_opened_change_nothing() -> None:
    opened = told("-----")
    assert told("+-+", breaker=opened, start=5) == opened


@given(st.lists(st.tuples(st.booleans(), st.floats(0.001, 100)), max_size=60))
def test_a_breaker_survives_its_table_and_never_stays_shut(
    results: list[tuple[bool, float]],
) -> None:
    breaker, now = Breaker(BreakerPolicy()), 0.0
    for success, later in results:
        now += later
        breaker = after(breaker, success, at(now))
        assert load(breaker.policy, dump(breaker)) == breaker
    assert allows(breaker, at(now + 481)) >= 1
    assert load(BreakerPolicy(), "") == Breaker()


@pytest.mark.req("E6")
def test_its_turns_are_kept_through_its_table_and_only_the_latest() -> None:
    breaker, now = Breaker(BreakerPolicy(consecutive=1, open_s=10)), NOW
    for _ in range(30):
        breaker = after(breaker, success=False, now=now)
        now += timedelta(hours=1)
        for _ in range(8):
            breaker = load(breaker.policy, dump(after(breaker, success=True, now=now)))
    assert [turn.to for turn in breaker.turns[-3:]] == ["open", "returning", "closed"]
    assert breaker.turns[-3].at == NOW + timedelta(hours=29)
    assert len(breaker.turns) == 20

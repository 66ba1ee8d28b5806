from __future__ import annotations

import json
from collections import Counter
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.clock import SeededDice
from domain.schedule import RetryPolicy, Tries, ceiling_s, next_try, retry_after

NOW = datetime(2026, 11, 30, 10, 15, 30, tzinfo=UTC)
HEADERS = json.loads((Path(__file__).parents[1] / "cases/files/retry-after.json").read_text())


def wait_s(
    counted: int = 1, *, jitter: float = 1.0, asked: float | None = None, **limits: float
) -> float:
    policy = RetryPolicy(**limits)  # type: ignore[arg-type]
    due = next_try(policy, Tries(counted, NOW), now=NOW, jitter=jitter, asked_wait_s=asked)
    assert due is not None
    return (due - NOW).total_seconds()


@pytest.mark.req("E4")
def test_ceilings_double_from_two_seconds_to_an_hour() -> None:
    ceilings = [ceiling_s(RetryPolicy(), n) for n in (0, 1, 2, 3, 11, 12, 13, 100_000)]
    assert ceilings == [2, 2, 4, 8, 2048, 3600, 3600, 3600]


def test_a_factor_of_one_never_grows() -> None:
    assert ceiling_s(RetryPolicy(factor=1), 10**9) == 2


@given(st.integers(0, 200), st.floats(0, 1))
def test_the_wait_lies_between_nothing_and_the_ceiling(counted: int, jitter: float) -> None:
    assert 0 <= wait_s(counted, jitter=jitter) <= ceiling_s(RetryPolicy(), counted)


@pytest.mark.req("E4")
@given(st.integers(0, 200), st.floats(0, 1), st.floats(0.001, 1e9))
def test_an_asked_wait_is_a_minimum_and_at_most_a_tenth_longer(
    counted: int, jitter: float, asked: float
) -> None:
    asked_s = min(asked, 86_400)
    assert asked_s - 0.001 <= wait_s(counted, jitter=jitter, asked=asked) <= asked_s * 1.1 + 0.001


@pytest.mark.req("E4")
def test_e_11_retries_of_a_crowd_are_spread_over_the_whole_wait() -> None:
    dice = SeededDice(11)
    waits = [wait_s(6, jitter=dice.jitter()) for _ in range(5000)]
    assert ceiling_s(RetryPolicy(), 6) == 64
    assert max(waits) - min(waits) > 63
    assert max(Counter(int(wait) for wait in waits).values()) < 500


@pytest.mark.req("E4")
def test_e_06_a_crowd_that_was_asked_to_wait_does_not_come_back_together() -> None:
    dice = SeededDice(6)
    waits = [wait_s(jitter=dice.jitter(), asked=120) for _ in range(5000)]
    assert min(waits) >= 120
    assert max(waits) <= 132
    assert max(Counter(int(wait) for wait in waits).values()) < 500


def test_an_asked_wait_of_nothing_leaves_our_own() -> None:
    assert wait_s(5, asked=0) == 32


@pytest.mark.req("E4")
def test_the_attempt_limit_ends_the_trying() -> None:
    policy = RetryPolicy(attempts=5)
    assert next_try(policy, Tries(4, NOW), now=NOW, jitter=0.5)
    assert next_try(policy, Tries(5, NOW), now=NOW, jitter=0.5) is None


@pytest.mark.req("E4")
def test_the_last_try_is_at_the_end_of_the_window() -> None:
    policy, late = RetryPolicy(window_s=100), NOW + timedelta(seconds=99)
    deadline = NOW + timedelta(seconds=100)
    assert next_try(policy, Tries(9, NOW), now=late, jitter=1.0) == deadline
    assert next_try(policy, Tries(9, NOW), now=deadline, jitter=1.0) is None


@pytest.mark.parametrize("value", HEADERS["values"], ids=lambda v: v["in"] or "empty")
def test_c_08_retry_after_is_read_in_every_form(value: dict[str, object]) -> None:
    assert retry_after(str(value["in"]), NOW) == value["wait_s"]


@pytest.mark.parametrize("header", ["1" * 5000, "999999999999"])
def test_absurd_numbers_are_a_day(header: str) -> None:
    assert retry_after(header, NOW) == 86_400


@pytest.mark.parametrize(
    "header", ["١٢", "1.5", "+5", "0x10", "Mon, 31 Feb 2026 10:17:30 GMT", "Mon, 30 Abc 2026 1"]
)
def test_nonsense_asks_for_nothing(header: str) -> None:
    assert retry_after(header, NOW) is None


def test_two_digit_years_far_ahead_are_the_past_century() -> None:
    assert retry_after("Monday, 30-Nov-94 10:17:30 GMT", NOW) == 0


@given(st.text(max_size=60))
def test_no_header_breaks_the_reader(header: str) -> None:
    asked = retry_after(header, NOW)
    assert asked is None or 0 <= asked <= 86_400

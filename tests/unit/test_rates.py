"""A rate: never more in any second than it says, nothing saved up, and not less without need."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.rates import Rate, begun, dump, free, load, wait_ms

RATES = st.sampled_from([0.1, 0.5, 1.0, 2.5, 7.0, 50.0, 333.0])
WAITS = st.lists(st.integers(min_value=0, max_value=400), min_size=1, max_size=120)


@pytest.mark.req("E10")
@given(RATES, WAITS)
def test_in_no_span_do_more_begin_than_may(per_s: float, waits_ms: list[int]) -> None:
    rate, now_ms, times = Rate(per_s), 1_000_000, []
    for wait in waits_ms:
        now_ms += wait
        while free(rate, now_ms):
            rate = begun(load(per_s, dump(rate)), now_ms)
            times.append(now_ms)
            assert len(times) < 50_000
    for place, start in enumerate(times):
        within = [at for at in times[place:] if at <= start + rate.span_ms]
        assert len(within) <= rate.most
    assert len(rate.began) <= 102


@pytest.mark.req("E10")
@given(RATES)
def test_who_waits_as_long_as_is_told_may_begin(per_s: float) -> None:
    rate, now_ms = Rate(per_s), 5_000_000
    began = now_ms
    for _ in range(200):
        assert wait_ms(rate, now_ms) == 0
        rate = begun(rate, now_ms)
        now_ms += 0 if free(rate, now_ms) else math.ceil(wait_ms(rate, now_ms))
    assert 200 / per_s <= (now_ms - began) / 1000 + rate.span_ms / 1000
    assert (now_ms - began) / 1000 <= 200 / per_s * 1.1 + rate.span_ms / 1000


def test_a_clock_that_was_put_right_does_not_hold_a_rate_up() -> None:
    ahead = begun(Rate(1.0), 10_000_000)
    assert free(ahead, 10_000_500) == 0
    assert free(ahead, 1_000_000) == 1

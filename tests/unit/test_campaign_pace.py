"""How many messages of a campaign may go, by stages; when it is held up, and what it leaves."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.campaigns import Pace, Tally, is_held_up, may_go, rate_per_s, stage, window

CAREFUL = Pace()
COUNTS = st.integers(min_value=0, max_value=400)


@pytest.mark.req("F2")
@pytest.mark.parametrize(
    "tally, most, number",
    [
        (Tally(open=500), 1, 1),
        (Tally(open=499, under_way=1), 0, 2),
        (Tally(open=499, arrived=1), 10, 2),
        (Tally(open=495, arrived=1, under_way=4), 6, 2),
        (Tally(open=489, arrived=10, under_way=1), 0, 3),
        (Tally(open=489, arrived=11), 100, 3),
        (Tally(open=389, arrived=111), 389, 4),
        (Tally(open=300, arrived=100, under_way=100), 300, 4),
        (Tally(open=4, arrived=11), 4, 3),
    ],
)
def test_one_goes_then_ten_then_a_hundred_then_the_rest(
    tally: Tally, most: int, number: int
) -> None:
    assert may_go(CAREFUL, tally, restarted=0) == most
    assert stage(CAREFUL, tally, restarted=0) == number


@pytest.mark.req("F2")
def test_after_it_was_held_up_it_is_careful_anew_and_what_failed_is_forgiven() -> None:
    held = Tally(open=400, arrived=110, failed=1)
    assert is_held_up(CAREFUL, held, forgiven=0)
    assert not is_held_up(CAREFUL, held, forgiven=1)
    assert may_go(CAREFUL, held, restarted=111) == 1


@pytest.mark.req("F2")
def test_live_traffic_keeps_most_of_the_slots_and_half_of_the_rate() -> None:
    assert [window(slots, is_busy=False) for slots in (1, 4, 8, 32)] == [1, 1, 2, 8]
    assert window(32, is_busy=True) == 1
    assert rate_per_s(Pace(rate_per_s=100), 10.0) == 5.0
    assert rate_per_s(Pace(rate_per_s=100), None) == 100.0


@given(COUNTS, COUNTS, st.booleans())
def test_whatever_arrives_a_campaign_comes_to_its_end(count: int, most: int, careful: bool) -> None:
    pace, tally, rounds = Pace(is_careful=careful), Tally(open=count), 0
    while not tally.is_through:
        assert not is_held_up(pace, tally, forgiven=0)
        going = min(may_go(pace, tally, restarted=0), most + 1)
        assert 0 <= going <= tally.open
        # At least one ends where none may go.
        ended = tally.under_way if not going else tally.under_way // 2
        tally = Tally(
            open=tally.open - going,
            under_way=tally.under_way + going - ended,
            arrived=tally.arrived + ended,
        )
        rounds += 1
        assert rounds <= 3 * count + 10
    assert tally.arrived == count

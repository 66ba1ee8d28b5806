from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain import instants

pytestmark = pytest.mark.req("C4")


# Before 1972 some zones had seconds, which RFC 3339 does not have.
FIRST, LAST = datetime(1973, 1, 1), datetime(9998, 1, 1)  # noqa: DTZ001


@given(st.datetimes(FIRST, LAST, timezones=st.timezones()))
def test_every_moment_written_with_its_zone_is_read_back(moment: datetime) -> None:
    assert instants.instant(moment.isoformat()) == moment.astimezone(UTC)


@pytest.mark.parametrize(
    "value",
    [
        "2026-11-30T10:00:00+01:99",
        "2026-11-30T10:00:00+24:00",
        "2026-11-30T24:00:00Z",
        "2026-11-30T10:00:61Z",
        "0000-01-01T00:00:00Z",
        "0001-01-01T00:00:00+01:00",
        "9999-12-31T23:59:60Z",
        "2026-11-30T10:00:00Z\n",
        "\u0662026-11-30T10:00:00Z",
        True,
        -1,
        10**18,
        1.5,
        None,
    ],
)
def test_what_is_no_instant_is_none_and_no_error(value: object) -> None:
    assert instants.instant(value) is None


@pytest.mark.parametrize("text", ["", "+1", "1.5", "1 ", "\u0661", "1" * 16, "-1"])
def test_digits_are_ascii_digits_and_nothing_else(text: str) -> None:
    assert instants.from_digits(text) is None


@given(st.text(max_size=40))
def test_no_text_raises(text: str) -> None:
    instants.instant(text)
    instants.from_digits(text)

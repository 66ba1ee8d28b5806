from __future__ import annotations

import pytest

from domain import units


@pytest.mark.parametrize(
    "text, seconds",
    [
        ("5m", 300.0),
        ("1h 30m", 5400.0),
        ("250ms", 0.25),
        ("5 m", 300.0),
        ("1.5s", 1.5),
        ("3d", 259_200.0),
        ("0s", 0.0),
        ("5", None),
        ("5 minutes", None),
        ("-5m", None),
        ("", None),
        ("٣m", None),
    ],
)
def test_a_duration_has_a_unit(text: str, seconds: float | None) -> None:
    assert units.seconds(text) == seconds


@pytest.mark.parametrize(
    "text, size",
    [
        ("1 MiB", 1_048_576),
        ("500kB", 500_000),
        ("1.5 GiB", 1_610_612_736),
        ("12 B", 12),
        ("12", None),
        ("1 mb", None),
        ("1 kiB", None),
        ("-1 B", None),
    ],
)
def test_a_size_has_a_unit(text: str, size: int | None) -> None:
    assert units.size_bytes(text) == size


def test_rates_are_per_second() -> None:
    assert units.per_second("50/s") == 50.0
    assert units.per_second("120/m") == 2.0
    assert units.per_second("50") is None
    assert units.bytes_per_second("16 KiB/s") == 16_384
    assert units.bytes_per_second("16 KiB/m") is None

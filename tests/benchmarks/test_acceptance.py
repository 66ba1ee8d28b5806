"""Deliveries stored and answered, against a handler that only verifies: one run, one client."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.benchmarks.client import Load, Told, apply
from tests.benchmarks.deliveries import Wish
from tests.benchmarks.figures import Figures, middle
from tests.benchmarks.places import Measured, bare, installation, pause_all

ROUNDS = 3
COUNT = 3000


@dataclass(frozen=True, slots=True)
class Round:
    """One load on one process: deliveries a second, and processor time of a delivery."""

    told: Told
    cpu_us: float

    @property
    def per_s(self) -> float:
        return self.told.per_s


@pytest.mark.timeout(600)
@pytest.mark.req("A9", "A13")
def test_acceptance_costs_a_small_multiple_of_verifying(tmp_path: Path, figures: Figures) -> None:
    # What is accepted waits: this is the price of acceptance alone.
    pause_all(tmp_path)
    with bare(tmp_path) as against, installation(tmp_path) as ours:
        _loaded(against, "warm", 500), _loaded(ours, "warm", 500)
        pairs = [(_loaded(against, f"b{n}"), _loaded(ours, f"o{n}")) for n in range(ROUNDS)]
        peak = middle(mine.per_s for _, mine in pairs)
        half = apply(Load(ours.port, Wish(int(peak), "half"), rate_per_s=peak / 2))
        resident_mb = ours.resident_mb
    _note(figures, pairs, resident_mb)
    figures.add("accept p99 at half the peak rate, work paused", f"{half.latency_ms(0.99):.0f} ms")
    assert all(set(each.told.statuses) == {"202"} for pair in pairs for each in pair)


def _loaded(measured: Measured, prefix: str, count: int = COUNT) -> Round:
    before_s = measured.cpu_s
    told = apply(Load(measured.port, Wish(count, prefix)))
    return Round(told, (measured.cpu_s - before_s) / count * 1e6)


def _note(figures: Figures, pairs: list[tuple[Round, Round]], resident_mb: float) -> None:
    ratio = middle(mine.per_s / other.per_s for other, mine in pairs)
    cpu_ratio = middle(other.cpu_us / mine.cpu_us for other, mine in pairs)
    other = middle(other.per_s for other, _ in pairs)
    mine = middle(mine.per_s for _, mine in pairs)
    cpu_us = middle(mine.cpu_us for _, mine in pairs)
    bare_us = middle(other.cpu_us for other, _ in pairs)
    client_us = middle(o.told.cpu_s / COUNT * 1e6 for o, _ in pairs)
    figures.add(
        "acceptance, SQLite, durable, against the bare handler",
        f"{ratio:.2f}",
        goal="≥ 0.20",
        is_met=ratio >= 0.2,
        more=f"{mine:.0f}/s against {other:.0f}/s; processor time alone: {cpu_ratio:.2f}",
    )
    figures.add(
        "processor time of one delivery",
        f"{cpu_us:.0f} µs",
        more=f"bare handler {bare_us:.0f} µs, load generator {client_us:.0f} µs",
    )
    figures.add(
        f"resident memory after {(ROUNDS + 1) * COUNT:,} deliveries",
        f"{resident_mb:.0f} MB",
        goal="≤ 150 MB",
        is_met=resident_mb <= 150,
    )

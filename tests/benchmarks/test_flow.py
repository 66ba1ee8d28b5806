"""From a delivery to the message about it: many at once, and one at a time."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from tests.benchmarks.client import Load, apply, send_all
from tests.benchmarks.deliveries import Wish
from tests.benchmarks.figures import Figures, middle
from tests.benchmarks.places import Measured, Peers, installation, peers

FILES = 200
ALONE = 30
# What other ways to do the same reach on such a machine (docs/explanation/performance.md).
HAND_WRITTEN_PER_S = 170


@pytest.mark.timeout(600)
@pytest.mark.req("E1")
def test_files_flow_through_download_step_and_message(tmp_path: Path, figures: Figures) -> None:
    with peers() as outside, installation(tmp_path, outside.host) as ours:
        _flowed(ours, outside, "warm", 30)
        _note_flow(ours, outside, figures)
        _note_latency(ours, outside, figures)
        _note_saturated(ours, outside, figures)
        resident_mb = ours.resident_mb
    figures.add(
        "resident memory after the flow, web and worker in one process",
        f"{resident_mb:.0f} MB",
        goal="≤ 150 MB",
        is_met=resident_mb <= 150,
    )


def _flowed(ours: Measured, outside: Peers, prefix: str, count: int) -> tuple[float, float]:
    """Files and acceptances a second."""
    told = apply(Load(ours.port, Wish(count, prefix, outside.host), connections=16))
    came = outside.await_messages(count)
    return count / (max(came.values()) - told.began_s), told.per_s


def _note_flow(ours: Measured, outside: Peers, figures: Figures) -> None:
    before_s = ours.cpu_s
    per_s, accepted_per_s = _flowed(ours, outside, "flow", FILES)
    cpu_ms = (ours.cpu_s - before_s) / FILES * 1000
    figures.add(
        "whole flow: accept, 100 kB download, checksum, one message",
        f"{per_s:.0f} files/s",
        goal=f"> {HAND_WRITTEN_PER_S}/s (PostgreSQL)",
        is_met=per_s > HAND_WRITTEN_PER_S,
        more=f"{cpu_ms:.1f} ms of processor time a file; accepted meanwhile {accepted_per_s:.0f}/s",
    )


def _note_latency(ours: Measured, outside: Peers, figures: Figures) -> None:
    """One file at a time, each after the system has come to rest."""
    took_ms = []
    for number in range(ALONE):
        outside.rest()
        load = Load(ours.port, Wish(1, f"alone{number}", outside.host), connections=1)
        told = send_all(load)
        (came_s,) = outside.await_messages(1).values()
        took_ms.append((came_s - told.began_s) * 1000)
    figures.add(
        "accept to message, idle system, p50",
        f"{middle(took_ms):.0f} ms",
        goal="≤ 20 ms",
        is_met=middle(took_ms) <= 20,
        more=f"p90 {sorted(took_ms)[int(ALONE * 0.9)]:.0f} ms",
    )


def _note_saturated(ours: Measured, outside: Peers, figures: Figures) -> None:
    """How acceptance fares while as much work runs as can."""
    backlog = apply(Load(ours.port, Wish(FILES, "backlog", outside.host)))
    rate_per_s = backlog.per_s / 2
    load = Load(ours.port, Wish(FILES, "meanwhile", outside.host), rate_per_s=rate_per_s)
    told = apply(load)
    began_s = time.monotonic()
    outside.await_messages(2 * FILES)
    p99_ms = told.latency_ms(0.99)
    figures.add(
        "accept p99 while the worker is saturated",
        f"{p99_ms:.0f} ms",
        goal="≤ 50 ms",
        is_met=p99_ms <= 50,
        more=f"at {rate_per_s:.0f}/s, half of what it took at once; "
        f"{time.monotonic() - began_s:.1f} s of work were left",
    )

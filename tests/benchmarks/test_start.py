"""How long somebody waits for a command, and for a process to listen."""

from __future__ import annotations

import resource
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.benchmarks.figures import Figures, middle
from tests.benchmarks.places import installation
from tests.commands import START, environment

ROUNDS = 5


@pytest.mark.req("F5", "F12")
def test_a_command_answers_at_once(tmp_path: Path, figures: Figures) -> None:
    nothing_s, _ = _took("-c", "pass")
    help_s, help_cpu_s = _took("-c", START, "--help")
    figures.add(
        "`laufzettel --help`",
        f"{help_s:.2f} s",
        goal="≤ 0.3 s",
        is_met=help_s <= 0.3,
        more=f"{help_cpu_s:.2f} s of processor time; an empty Python takes {nothing_s:.2f} s",
    )
    with installation(tmp_path):
        pass
    with installation(tmp_path) as ours:
        figures.add(
            "`laufzettel run` until it listens, second start",
            f"{ours.started_s:.1f} s",
            more=f"{ours.cpu_s:.2f} s of processor time, {ours.resident_mb:.0f} MB resident",
        )


def _took(*arguments: str) -> tuple[float, float]:
    """Seconds, and seconds of processor time."""
    waited_s, computed_s = [], []
    for _ in range(ROUNDS):
        began_s, before_s = time.perf_counter(), _children_s()
        subprocess.run(
            [sys.executable, *arguments], env=environment(), check=True, capture_output=True
        )
        waited_s.append(time.perf_counter() - began_s)
        computed_s.append(_children_s() - before_s)
    return middle(waited_s), middle(computed_s)


def _children_s() -> float:
    spent = resource.getrusage(resource.RUSAGE_CHILDREN)
    return spent.ru_utime + spent.ru_stime

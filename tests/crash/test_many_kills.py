"""Killed at random moments while files flow: nothing lost, nothing told twice."""

from __future__ import annotations

import os
import random
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.crash.harness import assert_all_as_it_should_be, world
from tests.crash.zygotes import NEVER, Zygote

SEED = int(os.environ.get("LAUFZETTEL_SEED", "20261130"))
LONGEST_LIFE_S = 1.5


@dataclass(frozen=True)
class Size:
    files: int
    kills: int


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "size" in metafunc.fixturenames:
        size = Size(500, 50) if metafunc.config.getoption("--all-pairs") else Size(60, 8)
        ids = [f"{size.files}-files-{size.kills}-kills-seed-{SEED}"]
        metafunc.parametrize("size", [size], ids=ids)


@pytest.mark.timeout(900)
@pytest.mark.req("A9", "B3", "D1", "D4", "E2")
def test_f_11_killed_at_random_moments_all_files_arrive_once(
    tmp_path: Path, zygote: Zygote, size: Size
) -> None:
    dice = random.Random(SEED)
    with world(tmp_path, zygote) as made:
        events = [made.version(f"F-{number:03}") for number in range(size.files)]
        for life in range(size.kills):
            made.send(*events[life :: size.kills])
            made.start()
            NEVER.wait(dice.uniform(0.1, LONGEST_LIFE_S))
            made.kill()
        made.drain()
        assert_all_as_it_should_be(made)
        told = made.told("new")
        assert sorted(entry["file_id"] for entry in told) == sorted(made.expected)

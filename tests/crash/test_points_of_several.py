"""Several processes on PostgreSQL, Valkey and S3, killed at points and pairs; counted from outside.

The process that listens and a worker are armed alike and die each for itself; a second worker comes
when the first of them has died, and takes over what lies there.
"""

from __future__ import annotations

import itertools
import random
from pathlib import Path

import pytest

from app.points import POINTS
from tests.crash import test_points as alone
from tests.crash.harness import assert_all_as_it_should_be, world
from tests.crash.places import Services, shared
from tests.crash.zygotes import KILLED, Zygote, until
from tests.stores import Postgres

# Processes that share a store do not migrate it (the test below), and no folder is synced.
NOT_HERE = (*(name for name in alone.ELSEWHERE if name != "sequencer."), "migrate.", "blobs.fsync.")
OF_MIGRATION = ("migrate.commit.before", "migrate.commit.after")
# Three starts of three processes, on whatever machine.
pytestmark = pytest.mark.timeout(300)
ON_THE_WAY = tuple(name for name in POINTS if not name.startswith(NOT_HERE))
SEED = alone.SEED


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """All of them, or a pair by the seed."""
    dice, is_all = random.Random(SEED), metafunc.config.getoption("--all-pairs")
    if "point" in metafunc.fixturenames:
        metafunc.parametrize("point", ON_THE_WAY if is_all else ())
    if "of_migration" in metafunc.fixturenames:
        points = OF_MIGRATION if is_all else (dice.choice(OF_MIGRATION),)
        metafunc.parametrize("of_migration", points)
    if "pair" in metafunc.fixturenames:
        pairs = list(itertools.product(ON_THE_WAY, repeat=2))
        dice.shuffle(pairs)
        chosen = [
            (f"{a}:{dice.randint(1, 6)}", f"{b}:{dice.randint(1, 6)}")
            for a, b in (pairs if is_all else pairs[:1])
        ]
        ids = [f"seed-{SEED}-{'-'.join(pair)}" for pair in chosen]
        metafunc.parametrize("pair", chosen, ids=ids)


@pytest.mark.req("A9", "B3", "D1", "D4", "E2", "F11")
def test_f_01_one_of_several_killed_at_a_point_twice_all_is_done_once(
    tmp_path: Path, zygote: Zygote, services: Services, point: str
) -> None:
    with world(tmp_path, zygote, shared(tmp_path, services)) as made:
        alone.some_files(made)
        assert made.drain(point, f"{point}:4"), f"{point} does not lie on the way"
        assert_all_as_it_should_be(made)


@pytest.mark.req("B3", "D1", "D4", "E2")
def test_f_01_several_killed_at_a_pair_of_points_all_is_done_once(
    tmp_path: Path, zygote: Zygote, services: Services, pair: tuple[str, str]
) -> None:
    with world(tmp_path, zygote, shared(tmp_path, services)) as made:
        alone.some_files(made)
        made.drain(*pair)
        assert_all_as_it_should_be(made)


@pytest.mark.req("F10")
def test_f_01_a_migration_that_was_killed_is_ended_by_the_next(
    tmp_path: Path, zygote: Zygote, postgres: Postgres, of_migration: str
) -> None:
    url = postgres.fresh(template="template1")
    (tmp_path / "laufzettel.toml").write_text(
        f'[laufzettel]\ndatabase = "{url}"\nartifacts = "file:artifacts"\n'
    )
    armed = {"LAUFZETTEL_SCRATCH": str(tmp_path), "LAUFZETTEL_POINT": of_migration}
    codes = []
    for environ in (armed, {}, {}):
        started = zygote.start(tmp_path, "migrate", **environ)
        until(started.is_over)
        codes.append(started.code)
    assert codes == [KILLED, 0, 0], (tmp_path / "run.log").read_text()
    postgres.drop(url)

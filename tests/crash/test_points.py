"""A real process killed at each named point, and at pairs of them; counted from outside."""

from __future__ import annotations

import itertools
import os
import random
from pathlib import Path

import pytest

from app.cli.demo.receiver import Behaviour
from app.cli.demo.serving import Exchange, LoopbackServer
from app.points import POINTS
from tests.crash.harness import World, assert_all_as_it_should_be, world
from tests.crash.zygotes import Zygote

# What the embedded default does not pass while files flow; ``test_every_point`` says who kills it.
ELSEWHERE = (
    "sequencer.",
    "blobs.delete.",
    "notes.",
    "restore.",
    "move.",
    "notify.ask.",
    "changes.",
)
ON_THE_WAY = tuple(name for name in POINTS if not name.startswith(ELSEWHERE))
ASKED = ("notify.ask.before", "notify.ask.after")
SEED = int(os.environ.get("LAUFZETTEL_SEED", "20261130"))
PAIRS = 50


def some_files(made: World) -> None:
    """Five files, one of them in two versions, one told twice."""
    events = [made.version(f"F-{number}") for number in range(4)]
    made.send(*events, made.version("F-0", 2), events[3])


@pytest.mark.req("A9", "B3", "D1", "D4", "E2", "F11")
@pytest.mark.parametrize("name", ON_THE_WAY)
def test_f_01_killed_at_a_point_twice_all_is_done_once(
    tmp_path: Path, zygote: Zygote, name: str
) -> None:
    with world(tmp_path, zygote) as made:
        some_files(made)
        # Twice, not three times: a job that took three workers with it is dead, and rightly so.
        assert made.drain(name, f"{name}:4"), f"{name} does not lie on the way"
        assert_all_as_it_should_be(made)


@pytest.mark.req("E2", "E5")
@pytest.mark.parametrize("name", ASKED)
@pytest.mark.parametrize("known", [True, False])
def test_f_01_killed_while_asking_a_receiver_it_is_told_once(
    tmp_path: Path, zygote: Zygote, name: str, known: bool
) -> None:
    def respond(exchange: Exchange) -> None:
        exchange.answer(200 if known else 404)

    asked = LoopbackServer(respond).start()
    ask = f'unclear = "ask"\nask = "GET {asked.url("/{message_id}")}"'
    try:
        with world(tmp_path, zygote, destination=ask) as made:
            made.receiver.misbehave(Behaviour(drop_answer=True, times=3))
            some_files(made)
            assert made.drain(name, f"{name}:2")
            assert_all_as_it_should_be(made)
    finally:
        asked.stop()


def chosen(config: pytest.Config) -> list[tuple[str, str]]:
    """Every pair, or fifty by the seed; how often each point is passed before is chance."""
    dice = random.Random(SEED)
    pairs = list(itertools.product(ON_THE_WAY, repeat=2))
    if not config.getoption("--all-pairs"):
        pairs = dice.sample(pairs, PAIRS)
    return [(f"{a}:{dice.randint(1, 6)}", f"{b}:{dice.randint(1, 6)}") for a, b in pairs]


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "pair" in metafunc.fixturenames:
        pairs = chosen(metafunc.config)
        ids = [f"seed-{SEED}-{'-'.join(pair)}" for pair in pairs]
        metafunc.parametrize("pair", pairs, ids=ids)


@pytest.mark.req("B3", "D1", "D4", "E2")
def test_f_01_killed_at_a_pair_of_points_all_is_done_once(
    tmp_path: Path, zygote: Zygote, pair: tuple[str, str]
) -> None:
    with world(tmp_path, zygote) as made:
        some_files(made)
        made.drain(*pair)
        assert_all_as_it_should_be(made)

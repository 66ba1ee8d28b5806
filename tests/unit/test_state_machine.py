"""The table of transitions, each row by example: given a phase, when this happens, then that."""

from __future__ import annotations

from typing import Any, get_args

import pytest

from domain import commands as c
from domain import events as e
from domain import work
from domain.decider import DECIDERS
from domain.errors import IllegalTransitionError
from domain.evolution import EVOLVERS, evolve
from domain.recipes import Recipe
from domain.states import File
from domain.work import JOB_MOVES, MESSAGE_MOVES, VERSION_MOVES
from tests.unit.transitions import (
    COMPLETED,
    IN_ONE_COMMAND,
    JOB_ROWS,
    MESSAGE_ROWS,
    ORDER,
    PDF_ONLY,
    VERSION_ROWS,
    Act,
    v1,
)
from tests.unit.world import OPERATOR, STREAM, World, told, version


def _given(steps: list[Act], recipe: Recipe = PDF_ONLY) -> World:
    world = World(recipes=(recipe,))
    for step in steps:
        step(world)
    return world


@pytest.mark.req("C1")
@pytest.mark.parametrize("current, given, when, then", VERSION_ROWS + IN_ONE_COMMAND)
def test_a_version_goes_where_the_table_says(
    current: str, given: list[Act], when: Act, then: str
) -> None:
    world = _given(given)
    assert world.phase("1") == current
    when(world)
    assert world.phase("1") == then
    world.check_log()


@pytest.mark.req("C1", "D1")
@pytest.mark.parametrize("current, given, when, then", JOB_ROWS)
def test_a_job_goes_where_the_table_says(
    current: str, given: list[Act], when: Act, then: str
) -> None:
    world = _given(given)
    known = world.job("download", "1").id
    assert world.file.jobs[known].phase == current
    when(world)
    assert world.file.jobs[known].phase == then


@pytest.mark.req("C1", "E5")
@pytest.mark.parametrize("current, given, when, then", MESSAGE_ROWS)
def test_a_message_goes_where_the_table_says(
    current: str, given: list[Act], when: Act, then: str
) -> None:
    world = _given(given)
    known = world.messages()[0].id
    assert world.file.messages[known].phase == current
    when(world)
    assert world.file.messages[known].phase == then


def _moves(world: World) -> set[tuple[str, str, str]]:
    """Every change of a phase that an event of this world's log made."""
    found: set[tuple[str, str, str]] = set()
    before = File()
    for event in world.events:
        after = evolve(before, event)
        for kind in ("jobs", "messages", "versions"):
            old, new = getattr(before, kind), getattr(after, kind)
            found |= {(kind, old[k].phase, new[k].phase) for k in old}
        before = after
    return found


@pytest.mark.req("C1")
def test_no_move_is_listed_that_no_example_shows() -> None:
    shown: set[tuple[str, str, str]] = set()
    for _, steps, when, _ in [*VERSION_ROWS, *IN_ONE_COMMAND, *JOB_ROWS, *MESSAGE_ROWS]:
        shown |= _moves(_given([*steps, when]))
    tables: dict[str, Any] = {
        "jobs": JOB_MOVES,
        "messages": MESSAGE_MOVES,
        "versions": VERSION_MOVES,
    }
    listed = {
        (kind, current, to)
        for kind, table in tables.items()
        for current, moves in table.items()
        for to in moves
    }
    assert listed - shown == set()


@pytest.mark.req("C1")
@pytest.mark.parametrize(
    "move, table",
    [
        (work.moved_job, JOB_MOVES),
        (work.moved_message, MESSAGE_MOVES),
        (work.moved_version, VERSION_MOVES),
    ],
)
def test_what_the_table_does_not_have_is_impossible(move: Any, table: Any) -> None:
    for current, moves in table.items():
        for to in table.keys() - moves - {current}:
            with pytest.raises(IllegalTransitionError):
                move(current, to)
    with pytest.raises(IllegalTransitionError):
        work.moved_job("done", "done")


@pytest.mark.req("C1")
def test_every_phase_has_its_row() -> None:
    assert set(JOB_MOVES) == set(get_args(work.JobPhase))
    assert set(MESSAGE_MOVES) == set(get_args(work.MessagePhase))
    assert set(VERSION_MOVES) == set(get_args(work.VersionPhase))


@pytest.mark.req("C2")
def test_every_event_has_an_evolver_and_every_command_a_decider() -> None:
    assert set(EVOLVERS) == set(get_args(e.FileEvent))
    assert set(DECIDERS) == set(get_args(c.AnyFileCommand))


@pytest.mark.req("C1")
def test_every_event_of_a_file_is_emitted_by_some_command() -> None:
    rest: list[list[Act]] = [
        [v1(), lambda w: w.given(c.HoldFile(**ORDER)), lambda w: w.given(c.ReleaseFile(**ORDER))],
        [*COMPLETED, lambda w: w.given(c.EraseFile(**ORDER))],
        [*COMPLETED, lambda w: w.given(c.ExpireContent(**ORDER, artifacts_before_ms=10**15))],
        [lambda w: w.given(ignored())],
    ]
    rows = [[*s, when] for _, s, when, _ in [*VERSION_ROWS, *JOB_ROWS, *MESSAGE_ROWS]]
    emitted = {type(event) for steps in rows + rest for event in _given(steps).events}
    assert emitted == set(get_args(e.FileEvent))


def ignored() -> c.ReportIgnored:
    return c.ReportIgnored(
        stream=STREAM,
        cause=OPERATOR,
        source="contracts",
        event="e9",
        event_id="9",
        file_id="F-17",
        type="file.viewed",
    )


@pytest.mark.req("C6")
def test_two_facts_that_say_the_same_start_one_download() -> None:
    world = told(World(), [version("1"), version("1", event="other")])
    assert [j.kind for j in world.file.jobs.values()] == ["download"]

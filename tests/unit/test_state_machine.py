"""The table of transitions, each row by example: given a phase, when this happens, then that."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, get_args

import pytest

from domain import commands as c
from domain import events as e
from domain import work
from domain.decider import DECIDERS
from domain.errors import IllegalTransitionError
from domain.evolution import EVOLVERS, evolve
from domain.outcomes import Again, Dead, Unclear
from domain.recipes import Recipe
from domain.schedule import RetryPolicy
from domain.states import File
from domain.work import JOB_MOVES, MESSAGE_MOVES, VERSION_MOVES
from tests.unit.world import (
    ERP,
    FIVE_TRIES,
    INVOICES,
    INVOICES_2,
    OPERATOR,
    STREAM,
    World,
    deleted,
    renamed,
    restored,
    told,
    version,
)

Act = Callable[[World], object]
ORDER: dict[str, Any] = {"stream": STREAM, "cause": OPERATOR}
ONE_TRY = RetryPolicy(attempts=1)
PDF_ONLY = replace(INVOICES, name_pattern="*.pdf")
HOLDING = replace(ERP, unclear="hold")


def v1(name: str = "invoice.pdf") -> Act:
    return lambda w: w.tell(version("1", sequence=1, name=name))


def newer(w: World) -> None:
    w.tell(version("2", sequence=5))


def delete(w: World) -> None:
    w.tell(deleted(7))


def restore(w: World) -> None:
    w.tell(restored(8))


def drain(w: World) -> None:
    w.work()


def jobs_done(w: World) -> None:
    w.work_jobs()


def job(name: str, outcome: Any = None, *, retry: RetryPolicy = FIVE_TRIES) -> Act:
    def act(w: World) -> None:
        w.claim(w.job(name).id)
        w.end_job(w.job(name).id, outcome, retry=retry)

    return act


def claim(name: str) -> Act:
    return lambda w: w.claim(w.job(name).id)


def end(name: str, outcome: Any = None) -> Act:
    return lambda w: w.end_job(w.job(name).id, outcome)


def retry(name: str) -> Act:
    return lambda w: w.given(c.RetryJob(job=w.job(name).id, **ORDER))


def cancel(name: str) -> Act:
    return lambda w: w.given(c.CancelJob(job=w.job(name).id, **ORDER))


def discard(name: str) -> Act:
    return lambda w: w.given(c.DiscardJob(job=w.job(name).id, **ORDER))


def message(outcome: Any = None, *, retry: RetryPolicy = FIVE_TRIES) -> Act:
    def act(w: World) -> None:
        last = w.messages()[-1].id
        w.claim(last)
        w.end_message(last, outcome, retry=retry)

    return act


def resolve(outcome: Any, *, force: bool = False) -> Act:
    return lambda w: w.given(
        c.ResolveMessage(message=w.messages()[0].id, outcome=outcome, force=force, **ORDER)
    )


def reprocess(w: World) -> None:
    w.recipes = (INVOICES_2,)
    w.given(c.Reprocess(version="1", **ORDER))


def holding(w: World) -> None:
    w.destinations = (HOLDING,)


BUSY = Again("busy")
BROKEN = Dead("broken")
SILENT = Unclear("no answer")
DOWNLOADING: list[Act] = [v1(), job("download", BUSY)]
TRANSFORMING: list[Act] = [v1(), job("download")]
NOTIFYING: list[Act] = [v1(), jobs_done]
COMPLETED: list[Act] = [v1(), drain]
FAILED: list[Act] = [v1(), job("download"), job("text", BROKEN), job("preview")]
NO_DOWNLOAD: list[Act] = [v1(), job("download", BROKEN)]
NOT_TOLD: list[Act] = [*NOTIFYING, message(BROKEN)]
SUPERSEDED: list[Act] = [v1(), newer]
IGNORED: list[Act] = [v1("notes.txt")]
DELETED: list[Act] = [v1(), delete]
DISCARDED: list[Act] = [v1(), job("download"), cancel("text"), job("preview")]
OPTIONAL_DEAD: list[Act] = [v1(), job("download"), job("preview", BROKEN), job("text")]

VERSION_ROWS: list[tuple[str, list[Act], Act, str]] = [
    ("received", [v1()], job("download", BUSY), "downloading"),
    ("received", [v1()], job("download"), "transforming"),
    ("received", [v1()], job("download", BROKEN), "failed"),
    ("received", [v1()], newer, "superseded"),
    ("received", [v1()], delete, "deleted"),
    ("received", [v1()], cancel("download"), "discarded"),
    ("received", [v1(), claim("download"), delete, restore], end("download"), "transforming"),
    ("downloading", DOWNLOADING, reprocess, "received"),
    ("downloading", DOWNLOADING, job("download", BUSY), "downloading"),
    ("downloading", DOWNLOADING, job("download"), "transforming"),
    ("downloading", DOWNLOADING, job("download", BUSY, retry=ONE_TRY), "failed"),
    ("downloading", DOWNLOADING, newer, "superseded"),
    ("downloading", DOWNLOADING, delete, "deleted"),
    ("downloading", DOWNLOADING, cancel("download"), "discarded"),
    ("transforming", TRANSFORMING, job("text", BUSY), "transforming"),
    ("transforming", TRANSFORMING, jobs_done, "notifying"),
    ("transforming", [*TRANSFORMING, job("preview")], job("text", BROKEN), "failed"),
    ("transforming", [*TRANSFORMING, job("text")], job("preview", BROKEN), "notifying"),
    ("transforming", [*TRANSFORMING, job("text")], cancel("preview"), "notifying"),
    ("transforming", TRANSFORMING, cancel("text"), "transforming"),
    ("transforming", [*TRANSFORMING, job("preview")], cancel("text"), "discarded"),
    ("transforming", TRANSFORMING, newer, "superseded"),
    ("transforming", TRANSFORMING, delete, "deleted"),
    ("notifying", NOTIFYING, message(), "completed"),
    ("notifying", NOTIFYING, message(BUSY), "notifying"),
    ("notifying", NOTIFYING, message(SILENT), "notifying"),
    ("notifying", NOTIFYING, message(BROKEN), "failed"),
    ("notifying", NOTIFYING, resolve("discard"), "completed"),
    ("notifying", NOTIFYING, newer, "superseded"),
    ("notifying", NOTIFYING, delete, "deleted"),
    ("notifying", OPTIONAL_DEAD, retry("preview"), "transforming"),
    ("completed", COMPLETED, newer, "completed"),
    ("completed", COMPLETED, delete, "deleted"),
    ("completed", COMPLETED, resolve("resend"), "completed"),
    ("completed", [*OPTIONAL_DEAD, message()], retry("preview"), "transforming"),
    ("failed", NO_DOWNLOAD, retry("download"), "downloading"),
    ("failed", NO_DOWNLOAD, discard("download"), "discarded"),
    ("failed", FAILED, retry("text"), "transforming"),
    ("failed", FAILED, discard("text"), "discarded"),
    ("failed", FAILED, newer, "failed"),
    ("failed", FAILED, delete, "deleted"),
    ("failed", NOT_TOLD, resolve("resend"), "notifying"),
    ("failed", NOT_TOLD, resolve("delivered"), "completed"),
    ("failed", NOT_TOLD, resolve("discard"), "completed"),
    ("superseded", SUPERSEDED, delete, "deleted"),
    (
        "superseded",
        SUPERSEDED,
        lambda w: w.tell(version("1", value="00009", sequence=6, event="again")),
        "received",
    ),
    ("ignored", IGNORED, delete, "deleted"),
    ("ignored", IGNORED, lambda w: w.tell(renamed(3, "notes.pdf")), "received"),
    ("ignored", IGNORED, lambda w: w.tell(renamed(3, "notes.doc")), "ignored"),
    ("deleted", DELETED, restore, "received"),
    ("deleted", [*IGNORED, delete], restore, "ignored"),
    ("deleted", [*SUPERSEDED, delete], restore, "superseded"),
    ("deleted", [*COMPLETED, newer, delete], restore, "completed"),
    ("discarded", DISCARDED, retry("text"), "transforming"),
    ("discarded", [v1(), cancel("download")], retry("download"), "downloading"),
    ("discarded", DISCARDED, newer, "discarded"),
    ("discarded", DISCARDED, delete, "deleted"),
]

# A run that finds the bytes goes on to the steps within the same command.
IN_ONE_COMMAND: list[tuple[str, list[Act], Act, str]] = [
    ("transforming", TRANSFORMING, reprocess, "transforming"),
    ("notifying", NOTIFYING, reprocess, "transforming"),
    ("completed", COMPLETED, reprocess, "transforming"),
    ("failed", FAILED, reprocess, "transforming"),
    ("discarded", DISCARDED, reprocess, "transforming"),
    ("deleted", [*COMPLETED, delete, drain], restore, "notifying"),
]

JOB_ROWS: list[tuple[str, list[Act], Act, str]] = [
    ("ready", [v1()], job("download", BUSY), "waiting"),
    ("ready", [v1()], job("download", c.Lost()), "waiting"),
    ("ready", [v1()], job("download"), "done"),
    ("ready", [v1()], job("download", BROKEN), "dead"),
    ("ready", [v1()], cancel("download"), "cancelled"),
    ("ready", [v1()], newer, "cancelled"),
    ("ready", [v1(), claim("download")], delete, "ready"),
    ("ready", [v1(), claim("download"), delete], end("download"), "cancelled"),
    ("waiting", DOWNLOADING, retry("download"), "ready"),
    ("waiting", DOWNLOADING, job("download", BUSY), "waiting"),
    ("waiting", DOWNLOADING, job("download"), "done"),
    ("waiting", DOWNLOADING, job("download", BUSY, retry=ONE_TRY), "dead"),
    ("waiting", DOWNLOADING, delete, "cancelled"),
    ("dead", NO_DOWNLOAD, retry("download"), "ready"),
    ("dead", NO_DOWNLOAD, discard("download"), "discarded"),
    ("cancelled", [v1(), cancel("download")], retry("download"), "ready"),
    ("discarded", [*NO_DOWNLOAD, discard("download")], retry("download"), "ready"),
]

WAITING: list[Act] = [*NOTIFYING, message(BUSY)]
UNCLEAR: list[Act] = [*NOTIFYING, message(SILENT)]
HELD: list[Act] = [holding, *NOTIFYING, message(SILENT)]


def hold_now(outcome: Any) -> Act:
    def act(w: World) -> None:
        holding(w)
        message(outcome)(w)

    return act


MESSAGE_ROWS: list[tuple[str, list[Act], Act, str]] = [
    ("pending", NOTIFYING, message(BUSY), "waiting"),
    ("pending", NOTIFYING, message(SILENT), "unclear"),
    ("pending", NOTIFYING, message(c.Lost()), "unclear"),
    ("pending", NOTIFYING, hold_now(SILENT), "held"),
    ("pending", NOTIFYING, message(), "delivered"),
    ("pending", NOTIFYING, message(BROKEN), "dead"),
    ("pending", NOTIFYING, newer, "skipped"),
    ("pending", NOTIFYING, resolve("discard"), "discarded"),
    ("waiting", WAITING, resolve("resend"), "pending"),
    ("waiting", WAITING, message(BUSY), "waiting"),
    ("waiting", WAITING, message(SILENT), "unclear"),
    ("waiting", WAITING, hold_now(SILENT), "held"),
    ("waiting", WAITING, message(), "delivered"),
    ("waiting", WAITING, message(BUSY, retry=ONE_TRY), "dead"),
    ("waiting", WAITING, delete, "skipped"),
    ("waiting", WAITING, resolve("discard"), "discarded"),
    ("unclear", UNCLEAR, resolve("resend"), "pending"),
    ("unclear", UNCLEAR, message(BUSY), "waiting"),
    ("unclear", UNCLEAR, message(SILENT), "unclear"),
    ("unclear", UNCLEAR, hold_now(SILENT), "held"),
    ("unclear", UNCLEAR, resolve("delivered"), "delivered"),
    ("unclear", UNCLEAR, message(SILENT, retry=ONE_TRY), "dead"),
    ("unclear", UNCLEAR, newer, "skipped"),
    ("unclear", UNCLEAR, resolve("discard"), "discarded"),
    ("held", HELD, resolve("resend"), "pending"),
    ("held", HELD, resolve("delivered"), "delivered"),
    ("held", HELD, newer, "skipped"),
    ("held", HELD, resolve("discard"), "discarded"),
    ("delivered", COMPLETED, resolve("resend"), "pending"),
    ("dead", NOT_TOLD, resolve("resend"), "pending"),
    ("dead", NOT_TOLD, resolve("delivered"), "delivered"),
    ("dead", NOT_TOLD, resolve("discard"), "discarded"),
    ("skipped", [*NOTIFYING, reprocess], resolve("resend", force=True), "pending"),
    ("discarded", [*NOTIFYING, resolve("discard")], resolve("resend"), "pending"),
]


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

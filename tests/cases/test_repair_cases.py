"""Cases of failure, repair and replay that the pure core decides: named after their ids."""

from __future__ import annotations

from dataclasses import replace
from itertools import permutations
from typing import Any

import pytest

from domain import commands as c
from domain.commands import Decision
from domain.events import StepFinished
from domain.outcomes import Again, Dead, Done
from domain.recipes import Recipe, Step
from tests.unit.world import (
    ERP,
    FIVE_TRIES,
    INVOICES,
    INVOICES_2,
    OPERATOR,
    STREAM,
    World,
    deleted,
    restored,
    told,
    version,
)

ORDER: dict[str, Any] = {"stream": STREAM, "cause": OPERATOR}
TEXT, PREVIEW, CONVERT = (Step(name=n, use=n) for n in ("text", "preview", "convert"))
THREE = replace(INVOICES, steps=(TEXT, PREVIEW, CONVERT))


def run(world: World, name: str, outcome: Any = None) -> None:
    """One attempt of a job."""
    job = world.job(name).id
    world.claim(job)
    world.end_job(job, outcome, retry=FIVE_TRIES)


def types(world: World) -> list[tuple[str, str]]:
    """What reached the receiver, in order."""
    return [(seen.type.removeprefix("file."), seen.version) for seen in world.seen]


@pytest.mark.req("C5")
def test_d_18_one_dead_step_of_three_fails_the_version_once_and_a_retry_completes_it() -> None:
    world = told(World(recipes=(THREE,)), [version("1")])
    run(world, "download")
    run(world, "preview", Dead("encrypted"))
    run(world, "text")
    for outcome in (Again("busy"), Again("busy"), None):
        run(world, "convert", outcome)
    world.work()
    assert (world.phase("1"), world.version("1").error) == ("failed", "encrypted")
    assert types(world) == [("version.failed", "1")]
    assert {"text", "convert"} <= world.version("1").outputs.keys()
    before = len(world.events)
    world.given(c.RetryJob(job=world.job("preview").id, **ORDER))
    world.work()
    assert world.phase("1") == "completed"
    assert types(world) == [("version.failed", "1"), ("version.completed", "1")]
    ran = [event.job for event in world.events[before:] if isinstance(event, StepFinished)]
    assert ran == [world.job("preview").id]


@pytest.mark.req("F3", "D4")
def test_d_19_a_run_under_a_changed_recipe_makes_only_what_is_new() -> None:
    world = told(World(), [version("1")])
    world.work()
    old = dict(world.file.made)
    assert world.refused(c.Reprocess(**ORDER)) == "nothing-to-do"
    world.recipes = (INVOICES_2,)
    world.given(c.Reprocess(**ORDER))
    world.work()
    assert world.version("1").run == 2
    assert old.items() <= world.file.made.items()
    assert len(world.file.made) == len(old) + 1


@pytest.mark.req("E2", "F3", "F9")
def test_e_14_an_unchanged_recipe_makes_nothing_and_a_changed_one_new_ids() -> None:
    world = told(World(), [version("1")])
    world.work()
    assert world.refused(c.Reprocess(**ORDER)) == "nothing-to-do"
    world.recipes = (INVOICES_2,)
    world.given(c.Reprocess(**ORDER))
    world.work()
    first, second = world.effects()
    assert first.id != second.id
    assert first.sequence < second.sequence


@pytest.mark.req("E2", "F9")
@pytest.mark.parametrize("order", list(permutations((0, 1, 2))))
def test_e_14_after_a_restore_of_an_old_backup_only_known_ids_are_sent(
    order: tuple[int, ...],
) -> None:
    facts = [version("1", sequence=1), deleted(2), restored(3)]
    lost = told(World(), [])
    for fact in facts:
        lost.tell(fact)
        lost.work()
    later = World(now_ms=lost.now_ms + 1_000, seen=list(lost.seen))
    told(later, [facts[n] for n in order])
    later.work()
    known = {seen.id for seen in lost.seen}
    assert {seen.id for seen in later.seen} <= known | {lost.seen[0].id}
    assert later.effects() == lost.effects()


@pytest.mark.req("E2")
def test_e_14_a_message_about_the_past_is_not_sent_again_as_if_current() -> None:
    world = told(World(), [version("1")])
    world.work()
    world.tell(version("2"))
    world.work()
    first = world.messages()[0].id
    again = c.ResolveMessage(message=first, outcome="resend", **ORDER)
    assert world.refused(again) == "superseded"
    assert isinstance(world.submit(replace(again, force=True)), Decision)
    world.work()
    assert [seen.id for seen in world.seen].count(first) == 2
    assert world.belief() == "file.version.completed:2"


@pytest.mark.req("F2")
def test_g_04_a_retry_pressed_twice_queues_one_run() -> None:
    world = told(World(), [version("1")])
    run(world, "download", Dead("gone"))
    retry = c.RetryJob(job=world.job("download").id, **ORDER)
    world.given(retry)
    assert world.refused(retry) == "conflict"
    world.claim(retry.job)
    assert world.refused(retry) == "conflict"
    world.end_job(retry.job)
    assert world.refused(retry) == "nothing-to-do"
    assert "JobDied" in world.kinds()


@pytest.mark.req("C1", "D6")
def test_c_13_an_empty_file_completes_where_no_step_needs_its_content() -> None:
    world = told(World(recipes=(replace(INVOICES, steps=()),)), [version("1")])
    world.work()
    assert world.phase("1") == "completed"
    assert types(world) == [("version.completed", "1")]
    other = told(World(), [version("1")])
    run(other, "download")
    run(other, "text", Dead("empty file"))
    run(other, "preview", Dead("empty file"))
    other.work()
    assert [j.attempts for j in other.file.jobs.values()] == [1, 1, 1]
    assert types(other) == [("version.failed", "1")]


@pytest.mark.req("D1")
def test_f_02_a_late_worker_cannot_end_what_another_has_claimed_since() -> None:
    world = told(World(), [version("1")])
    download = world.job("download").id
    world.claim(download)
    late = c.FinishJob(
        stream=STREAM,
        cause=OPERATOR,
        job=download,
        epoch=world.leases[download],
        outcome=Done(c.Stored()),
        retry=FIVE_TRIES,
    )
    world.end_job(download, c.Lost())
    assert world.refused(late) == "stale"


@pytest.mark.req("D1")
def test_f_07_a_job_that_kills_three_workers_is_dead() -> None:
    world = told(World(), [version("1")])
    for _ in range(3):
        run(world, "download", c.Lost())
    job = world.job("download")
    assert (job.phase, job.error, job.losses) == ("dead", "worker died 3 times", 3)


@pytest.mark.req("B9")
def test_erasing_recalls_what_is_unsent_and_tells_those_who_had_the_file() -> None:
    world = told(World(), [version("1", sequence=1)])
    world.work()
    told(world, [version("2", sequence=2)])
    world.given(c.HoldFile(**ORDER))
    assert world.refused(c.EraseFile(**ORDER)) == "held"
    world.given(c.ReleaseFile(**ORDER))
    world.given(c.EraseFile(**ORDER))
    assert world.refused(c.EraseFile(**ORDER)) == "nothing-to-do"
    told(world, [version("2", sequence=3, event="repeat")])
    world.work()
    assert types(world) == [("version.completed", "1"), ("erased", "")]
    assert not world.file.made
    assert {v.phase for v in world.file.versions.values()} == {"deleted"}
    told(world, [version("3", sequence=4)])
    world.work()
    assert world.phase("3") == "completed"


@pytest.mark.req("E5")
def test_a_held_message_waits_for_an_operator() -> None:
    world = told(World(destinations=(replace(ERP, unclear="hold"),)), [version("1")])
    world.work_jobs()
    message = world.messages()[0].id
    world.claim(message)
    world.end_message(message, c.Lost())
    world.work()
    assert (world.messages()[0].phase, world.phase("1")) == ("held", "notifying")
    world.given(c.ResolveMessage(message=message, outcome="delivered", **ORDER))
    assert world.phase("1") == "completed"


@pytest.mark.req("C7")
def test_a_changed_configuration_changes_nothing_that_was_decided() -> None:
    other: Recipe = replace(INVOICES_2, notify=())
    world = told(World(), [version("1")])
    world.recipes = (other,)
    world.work()
    assert world.version("1").recipe == INVOICES.digest
    assert types(world) == [("version.completed", "1")]

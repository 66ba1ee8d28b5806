"""Cases that the pure core decides alone: each test is named after its case."""

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
from domain.states import current_result
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


@pytest.mark.req("C4")
def test_b_01_an_older_version_after_a_newer_one_is_superseded_and_silent() -> None:
    world = told(World(), [version("3")])
    world.work()
    world.tell(version("2"))
    world.work()
    assert (world.phase("2"), world.phase("3")) == ("superseded", "completed")
    assert world.file.view.current == current_result(world.file) == "3"
    assert types(world) == [("version.completed", "3")]
    assert not [job for job in world.file.jobs.values() if job.version == "2"]


@pytest.mark.req("C4", "E7")
def test_b_01_a_version_in_work_gives_way_to_a_newer_one() -> None:
    world = told(World(), [version("2")])
    world.work_jobs()
    world.tell(version("3"))
    assert [m.phase for m in world.messages()] == ["skipped"]
    world.work()
    assert types(world) == [("version.completed", "3")]


@pytest.mark.req("C4")
def test_b_02_a_change_before_the_creation_is_current() -> None:
    world = told(World(), [version("2"), version("1")])
    world.work()
    assert (world.phase("1"), world.phase("2")) == ("superseded", "completed")
    assert types(world) == [("version.completed", "2")]


@pytest.mark.req("C6")
def test_b_03_a_deletion_stops_the_download_and_tells_nobody_who_never_heard() -> None:
    world = told(World(), [version("1", sequence=1)])
    download = world.job("download").id
    world.claim(download)
    world.tell(deleted(2))
    assert world.file.jobs[download].asked
    world.end_job(download, Again("asked to stop", counted=False))
    world.work()
    assert world.file.jobs[download].phase == "cancelled"
    assert world.phase("1") == "deleted"
    assert not world.file.messages
    assert len(world.file.jobs) == 1


@pytest.mark.req("C6")
def test_b_03_a_deletion_is_told_once_to_those_who_had_an_earlier_version() -> None:
    world = told(World(), [version("1", sequence=1)])
    world.work()
    told(world, [version("2", sequence=2), deleted(3), deleted(3, "again")])
    world.work()
    assert types(world) == [("version.completed", "1"), ("deleted", "")]
    assert {v.phase for v in world.file.versions.values()} == {"deleted"}
    assert not [job for job in world.file.jobs.values() if job.phase == "dead"]


@pytest.mark.req("C6", "E2")
def test_b_04_a_restored_file_is_told_anew_from_the_bytes_that_are_there() -> None:
    world = told(World(), [version("1", sequence=1)])
    world.work()
    for fact in (deleted(2), restored(3), deleted(4), restored(5)):
        world.tell(fact)
        world.work()
    assert world.phase("1") == "completed"
    assert [kind for kind, _ in types(world)] == [
        "version.completed", "deleted", "version.completed", "deleted", "version.completed",
    ]  # fmt: skip
    assert len({seen.id for seen in world.seen}) == len(world.seen) == len(world.effects())
    assert len([j for j in world.file.jobs.values() if j.kind == "download"]) == 1
    assert world.file.generation == 3


@pytest.mark.req("C6")
def test_b_04_a_restoration_that_arrives_before_its_deletion_ends_completed() -> None:
    world = told(World(), [version("1", sequence=1), restored(3), deleted(2)])
    world.work()
    assert world.phase("1") == "completed"
    assert types(world) == [("version.completed", "1")]


@pytest.mark.req("C6")
def test_b_05_a_renaming_restarts_nothing_and_names_what_is_made_afterwards() -> None:
    world = told(World(), [version("1", sequence=1)])
    run(world, "download")
    run(world, "text")
    world.claim(world.job("preview").id)
    world.tell(renamed(2, "renamed.pdf"))
    world.work()
    assert len(world.file.jobs) == 3
    assert [seen.name for seen in world.seen] == ["renamed.pdf"]
    assert world.file.names == ("invoice.pdf", "renamed.pdf")


@pytest.mark.req("C6", "E1")
def test_b_05_a_message_made_before_a_renaming_keeps_its_bytes() -> None:
    world = told(World(), [version("1", sequence=1)])
    world.work_jobs()
    world.tell(renamed(2, "renamed.pdf"))
    world.work()
    assert [(s.type, s.name) for s in world.effects()] == [
        ("file.version.completed", "invoice.pdf"),
        ("file.renamed", "renamed.pdf"),
    ]


@pytest.mark.req("D4")
def test_b_06_the_same_bytes_as_a_new_version_are_not_fetched_again() -> None:
    world = told(World(), [version("1")])
    world.work()
    digest = world.version("1").original
    world.given(world.report(version("2"), sha256=digest))
    world.work()
    assert world.file.view.current == "2"
    assert world.version("2").outputs == world.version("1").outputs
    assert not [job for job in world.file.jobs.values() if job.version == "2"]
    assert types(world) == [("version.completed", "1"), ("version.completed", "2")]


@pytest.mark.req("C3")
def test_b_07_a_further_event_about_a_version_joins_it() -> None:
    world = told(World(), [version("1")])
    world.work()
    decision = world.tell(version("1", event="other"))
    assert [type(event).__name__ for event in decision.events] == ["VersionReported"]
    world.work()
    assert types(world) == [("version.completed", "1")]


@pytest.mark.req("C4")
def test_b_08_a_newer_version_takes_over_from_one_whose_bytes_do_not_match() -> None:
    world = told(World(), [version("1")])
    download = world.job("download").id
    world.claim(download)
    world.tell(version("2"))
    world.end_job(download, Again("content does not match announcement, got 1200 bytes"))
    world.work()
    assert (world.phase("1"), world.phase("2")) == ("superseded", "completed")


@pytest.mark.req("C4")
@pytest.mark.parametrize("seed", range(20))
def test_b_09_ten_versions_at_once_end_with_the_tenth(seed: int) -> None:
    numbers = [(n * 7 + seed) % 11 for n in range(1, 12) if (n * 7 + seed) % 11]
    world = World()
    for number in numbers:
        world.tell(version(str(number)))
        if number % 3 == seed % 3:
            world.work()
    world.work()
    assert world.file.view.current == "10"
    assert world.phase("10") == "completed"
    others = {v.phase for v in world.file.versions.values()}
    assert others <= {"completed", "superseded"}
    seen = [int(s.version) for s in world.seen]
    assert seen == sorted(set(seen))
    assert seen[-1] == 10


@pytest.mark.req("C6")
def test_b_10_identity_is_the_file_never_its_name() -> None:
    files = {"a": World(stream="fil_a"), "b": World(stream="fil_b")}
    for name, world in files.items():
        world.tell(version("1", sequence=1, name=name))
        world.work()
    files["a"].tell(renamed(2, "b"))
    files["b"].tell(deleted(3))
    for world in files.values():
        world.work()
    assert files["a"].file.view.name == "b"
    assert files["a"].phase("1") == "completed"
    assert files["b"].phase("1") == "deleted"
    assert files["a"].file.made


@pytest.mark.req("A7")
def test_b_11_two_sources_with_the_same_ids_share_nothing() -> None:
    both = replace(INVOICES, sources=("s1", "s2"))
    first = World(recipes=(both,), source="s1", stream="fil_s1")
    second = World(recipes=(both,), source="s2", stream="fil_s2")
    for world in (first, second):
        world.tell(version("1"))
        world.work()
    assert not set(first.file.jobs) & set(second.file.jobs)
    assert not set(first.file.messages) & set(second.file.messages)


@pytest.mark.req("A6", "C6")
@pytest.mark.parametrize(
    "name",
    [
        "~$Vertrag.docx", ".~lock.x.odt#", "x.pdf.part", "x.ocTransferId123.part",
        "x.crdownload", ".DS_Store",
    ],
)  # fmt: skip
def test_b_12_temporary_files_are_ignored_until_they_are_renamed(name: str) -> None:
    world = World(recipes=(replace(INVOICES, name_pattern="*"),))
    world.tell(version("1", sequence=1, name=name))
    assert world.phase("1") == "ignored"
    assert not world.file.jobs
    told(world, [renamed(2, "x.pdf"), renamed(3, name), renamed(4, "x.pdf", "once more")])
    world.work()
    assert world.phase("1") == "completed"
    assert types(world) == [("version.completed", "1")]


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

"""Cases of order and versions that the pure core decides: each test is named after its case."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from domain.outcomes import Again
from domain.recipes import Step
from domain.states import current_result
from tests.unit.world import (
    FIVE_TRIES,
    INVOICES,
    World,
    deleted,
    renamed,
    restored,
    told,
    version,
)

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


@pytest.mark.req("C4", "E7")
def test_b_01_a_message_that_was_being_sent_when_a_newer_version_came_is_not_tried_again() -> None:
    world = told(World(), [version("2")])
    world.work_jobs()
    message = world.messages()[0].id
    world.claim(message)
    world.tell(version("3"))
    world.end_message(message, Again("answered 503"))
    assert world.messages()[0].phase == "skipped"
    world.work()
    assert types(world) == [("version.completed", "3")]

"""Names that fit no screen, and steps that nobody needs, over HTTP."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from app.cli import words
from app.store import tables as t
from app.web.console import shown as shown_names
from domain.commands import Stored
from domain.outcomes import Dead, Done
from tests.installations import Installation, event, found, installed, recorded
from tests.workings import finish_job, stored

OPTIONAL = (
    '{ name = "sum", use = "checksum" }, { name = "small", use = "preview", required = false }'
)


@pytest.fixture
def running(tmp_path: Path) -> Iterator[Installation]:
    with installed(tmp_path, steps=OPTIONAL) as installation:
        yield installation


@pytest.mark.req("A6")
def test_a_name_longer_than_any_file_system_takes_is_422_and_the_field_is_named(
    running: Installation,
) -> None:
    answer = running.send(event(file_name="x" * 4097))
    assert (answer.status_code, answer.json()["field"]) == (422, "/file/name")
    assert "longer than 4096 characters" in answer.json()["detail"]
    assert recorded(running) == 0
    assert running.send(event(file_name="x" * 4096)).status_code == 202


@pytest.mark.req("F6")
def test_a_dead_step_that_the_recipe_can_do_without_needs_no_human(running: Installation) -> None:
    running.send(event())
    (download,) = found(running, t.jobs, kind="download")
    stream = download.stream
    finish_job(running, download.id, Done(Stored((stored(running, stream, "original", b"x"),))))
    (small,) = found(running, t.jobs, name="small")
    finish_job(running, small.id, Dead(reason="damaged"))
    assert running.api("GET", "/status", running.token()).json()["needs"] == []
    (cause,) = running.api("GET", "/dead-letters", running.token()).json()["items"]
    assert (cause["name"], cause["error"]) == ("small", "damaged")
    (needed,) = found(running, t.jobs, name="sum")
    finish_job(running, needed.id, Dead(reason="no room"))
    (need,) = running.api("GET", "/status", running.token()).json()["needs"]
    assert (need["name"], need["reason"]) == ("sum", "no room")


@pytest.mark.req("F5")
def test_lists_show_the_beginning_and_the_end_of_a_very_long_name(running: Installation) -> None:
    name = "anfang-" + "x" * 4000 + "-ende.pdf"
    running.send(event(file_name=name))
    (listed,) = running.api("GET", "/files", running.token()).json()["items"]
    assert listed["name"] == name
    for shown in (words.short(name), shown_names.short(name)):
        assert len(shown) == 120
        assert shown.startswith("anfang-x")
        assert shown.endswith("-ende.pdf")
    assert words.short("a.pdf") == shown_names.short("a.pdf") == "a.pdf"

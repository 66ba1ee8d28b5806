"""What commands say of what the API told them: the order of a slip, tries, and what was lost."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from app.cli import app, standing, words
from tests.servers import Peer, Received, serving


def attempt(number: int, at: str, outcome: str) -> dict[str, Any]:
    told: dict[str, Any] = {"number": number, "at": at, "outcome": outcome, "error": "404"}
    return told | {"duration_ms": 1, "status": None, "response_body": None}


def job(*attempts: dict[str, Any], due_at: str | None = None) -> dict[str, Any]:
    ended = None if due_at else "2026-05-04T11:59:00Z"
    state = "waiting" if due_at else "dead"
    told: dict[str, Any] = {"id": "job_1", "name": "download", "kind": "download", "state": state}
    told |= {"source": "inbox", "attempts": list(attempts), "ended_at": ended, "due_at": due_at}
    return told | {"error": "404", "progress": None}


def file_with(*jobs: dict[str, Any]) -> dict[str, Any]:
    version: dict[str, Any] = {
        "version": "1",
        "name": "a.pdf",
        "size": 1,
        "media_type": "",
        "recipe": "",
    }
    version |= {"reported_at": "2026-05-04T11:00:00Z", "completed_at": None, "state": "received"}
    version |= {"jobs": list(jobs), "messages": [], "artifacts": [], "missing": {}, "error": ""}
    told: dict[str, Any] = {
        "id": "fil_1",
        "name": "a.pdf",
        "source": "inbox",
        "file_id": "a",
        "project": "",
    }
    told |= {"state": "received", "current": None, "held": False, "erased": False}
    told |= {"is_ordered": True, "changed_at": None, "facts": [], "messages": []}
    return told | {"versions": [version]}


def shown(documents: Mapping[str, Any], *told: str) -> str:
    def answer(request: Received, peer: Peer) -> None:
        path = request.target.partition("?")[0].removeprefix("/api/v1")
        peer.respond(200, json.dumps(documents.get(path, {"items": [], "paused": {}})).encode())

    with serving(answer) as server:
        environ = {"LAUFZETTEL_TOKEN": "x"}
        ended = CliRunner().invoke(app, ["--url", server.url(""), *told], env=environ)
    assert ended.exit_code == 0, ended.output
    return ended.output


@pytest.mark.req("F2")
def test_a_slip_is_in_the_order_of_time_however_long_the_fractions_are() -> None:
    first, second = "2026-05-04T11:30:00Z", "2026-05-04T11:30:00.5Z"
    third = "2026-05-04T11:30:00.51Z"
    tries = [attempt(3, third, "dead"), attempt(2, second, "again"), attempt(1, first, "again")]
    told = shown({"/files/fil_1": file_with(job(*tries))}, "show", "fil_1")
    places = [told.index(f"try {number}:") for number in (1, 2, 3)]
    assert places == sorted(places)


@pytest.mark.req("F2")
def test_a_try_that_failed_says_how_long_it_took_and_when_the_next_was_or_is() -> None:
    tries = [
        attempt(1, "2026-05-04T11:30:00Z", "again"),
        attempt(2, "2026-05-04T11:31:00Z", "lost"),
    ]
    open_job = job(*tries, due_at="2126-05-04T12:05:00Z")
    told = shown({"/files/fil_1": file_with(open_job)}, "show", "fil_1")
    assert "try 1: failed after 1 ms: 404; tried again at 2026-05-0" in told
    assert "try 2: its worker died after 1 ms: 404; next try 2126-05-0" in told


def test_tries_that_were_cut_off_are_not_counted_as_lost_messages() -> None:
    place: dict[str, Any] = {
        "name": "erp",
        "breaker": "closed",
        "states": {},
        "mean_ms": 1.0,
        "paused": None,
    }
    place |= {"outcomes": {"lost": 4}, "oldest_due_at": None}
    numbers: dict[str, Any] = {key: {} for key in ("files", "jobs", "messages", "running")}
    numbers |= {"oldest_due_s": {}, "oldest_retry_at": None, "position": 1}
    told = shown({"/stats": numbers, "/destinations": {"items": [place]}}, "stats")
    assert "4 cut off as their worker died" in " ".join(told.split())


@pytest.mark.parametrize("command", ["verify", "replay", "migrate", "check"])
def test_an_address_is_refused_where_it_does_nothing(tmp_path: Path, command: str) -> None:
    told = ["-c", str(tmp_path / "none.toml"), "--url", "http://127.0.0.1:9", command]
    ended = CliRunner().invoke(app, told)
    assert (ended.exit_code, f"--url has no meaning for {command}" in ended.stderr) == (2, True)


def test_a_part_that_is_cut_off_says_when_it_is_tried_again() -> None:
    moment = words.Moment(datetime(2026, 5, 4, 12, 0, tzinfo=UTC), UTC)
    row = {"breaker": "open", "breaker_until": "2026-05-04T12:00:30Z"}
    assert standing._breaker(row, moment) == "open, next try 12:00:30"
    assert standing._breaker({"breaker": "closed", "breaker_until": None}, moment) == "closed"

"""Case G-07: whatever does not move is seen, in the numbers and in what needs a human."""

from __future__ import annotations

import re
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from app.clock import SettableClock, SystemClock
from app.store import tables as t
from app.store import workers
from domain.outcomes import Dead
from tests import runtimes as r
from tests.installations import Installation, event, found, installed
from tests.servers import answering, serving
from tests.workings import finish_job

pytestmark = pytest.mark.usefixtures("either_database")
DAY_S = timedelta(days=1).total_seconds()


def gauges(running: Installation) -> dict[str, float]:
    """The gauges as Prometheus reads them, by name and labels."""
    page = running.http.get("/metrics").text
    lines = re.findall(r"^laufzettel_(\w+(?:\{[^}]*\})?) (\S+)$", page, re.MULTILINE)
    return {name.replace('"', "'"): float(value) for name, value in lines}


def needs(running: Installation, token: str) -> dict[tuple[str, str], Any]:
    told = running.api("GET", "/status", token).json()
    return {(need["what"], need["name"]): need for need in told["needs"]}


@pytest.mark.req("F8")
def test_g_07_silence_a_stuck_job_a_dead_worker_and_an_expiry_are_seen(tmp_path: Path) -> None:
    # PostgreSQL has a clock of its own: the tests' begins where that one is.
    now = SystemClock().now()
    clock = SettableClock(now)
    with installed(tmp_path, clock=clock) as running:
        token = running.token("viewer")
        running.send(event(id="e-1", file_id="f-1", file_name="stuck.pdf"))
        expiring = event(id="e-2", type="subscription.expiring", file_id="f-1")
        assert running.send(expiring).status_code == 202
        r.until(lambda: ("subscription", "s") in needs(running, token))
        now_ms = int(now.timestamp() * 1000)
        running.ledger.operate(lambda c, _: workers.seen(c, "host:1", now_ms))
        assert gauges(running)["workers"] == 1
        clock.advance(DAY_S + 60)
        seen, told = gauges(running), needs(running, token)
    assert seen["workers"] == 0
    assert seen["due{kind='download'}"] == 1
    assert seen["oldest_due_seconds{kind='download'}"] >= DAY_S
    assert seen["oldest_due_seconds{kind='message'}"] == 0
    assert seen["source_silent_seconds{source='s'}"] >= DAY_S
    assert ("silent-source", "s") in told
    assert ("waiting", "download") in told


@pytest.mark.req("F8")
def test_g_07_a_dead_letter_says_all_that_one_needs_to_know(tmp_path: Path) -> None:
    with installed(tmp_path) as running:
        token = running.token("viewer")
        running.send(event(file_name="Vertrag.pdf"))
        (job,) = found(running, t.jobs)
        finish_job(running, job.id, Dead("is encrypted"))
        assert gauges(running)["dead_letters{kind='job'}"] == 1
        (listed,) = running.api("GET", "/jobs?state=dead", token).json()["items"]
        (file,) = running.api("GET", "/files?state=failed", token).json()["items"]
    assert (listed["source"], listed["version"], listed["name"]) == ("s", "1", "download")
    assert (listed["error"], listed["attempts_counted"]) == ("is encrypted", 1)
    assert listed["due_at"] is None
    assert listed["file"] == file["id"]
    assert (file["file_id"], file["name"]) == ("f-1", "Vertrag.pdf")
    assert file["versions"][0]["step"] == "download"


@pytest.mark.req("F8")
def test_g_07_a_worker_says_that_it_lives_until_it_stops(tmp_path: Path) -> None:
    with serving(answering(200)) as source, serving(answering(204)) as erp:
        config = r.configured(tmp_path, source=source.host, destination=erp.url("/"))
        with r.running(config) as process:
            store = process.base.store
            (alive,) = r.until(lambda: r.rows(store, t.workers))
            assert alive.owner == process.base.owner
            process.worker.stop(grace_s=1)
            assert r.rows(store, t.workers) == []

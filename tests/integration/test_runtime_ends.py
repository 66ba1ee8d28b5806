"""What a process leaves behind when it stops, dies or comes too late, and what a start refuses."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import threading
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from app.compose import Refused, compose_run
from app.config import Config
from app.store import event_log, leases
from app.store import tables as t
from app.store.engine import Store
from domain.installation import ConfigurationChanged, InstallationCreated, RecipeDefined
from tests import runtimes as r
from tests.servers import Peer, Received, Server, answering, closed_port, in_turn, serving

NO_STEPS = "transforms = []"

pytestmark = pytest.mark.usefixtures("either_database")


def hang(request: Received, peer: Peer) -> None:
    peer.hang()


def plain(folder: Path, source: Server, erp: Server, **parts: str) -> Config:
    return r.configured(
        folder, source=source.host, destination=erp.url("/"), **{"recipe": NO_STEPS, **parts}
    )


def is_all_placed(store: Store) -> bool:
    return len(r.rows(store, t.positions)) == len(r.rows(store, t.events))


@pytest.mark.req("D1")
def test_a_worker_that_comes_back_late_cannot_commit(tmp_path: Path) -> None:
    go_on = threading.Event()

    def late(request: Received, peer: Peer) -> None:
        go_on.wait(20)
        peer.respond(200, b"%PDF-1.4 late")

    sources = in_turn(late, answering(200, r.PDF))
    with (
        serving(sources) as source,
        serving(answering(204)) as erp,
        r.running(plain(tmp_path, source, erp)) as process,
    ):
        r.announce(process, source.url("/f"))
        r.until(lambda: source.requests)
        process.base.ledger.operate(leases.lapse_all)
        assert process.worker.reap() == 1
        file = r.until(lambda: r.settled(process))
        go_on.set()
        r.until(lambda: not process.worker.claims)
        assert r.file_of(process) == file
        attempts = r.rows(process.base.store, t.attempts)
        made = r.rows(process.base.store, t.artifacts)
    assert [a.outcome for a in attempts] == ["lost", "done", "done"]
    assert [artifact.size_bytes for artifact in made] == [len(r.PDF)]
    assert len(erp.requests) == 1


@pytest.mark.req("F10")
def test_a_stop_hands_running_work_back_without_counting_it(tmp_path: Path) -> None:
    with serving(in_turn(hang, answering(200, r.PDF))) as source, serving(answering(204)) as erp:
        config = plain(tmp_path, source, erp)
        with r.running(config, grace_s=0.1) as process:
            r.announce(process, source.url("/f"))
            r.until(lambda: source.requests)
        with r.running(config) as process:
            file = r.until(lambda: r.settled(process))
            attempts = r.rows(process.base.store, t.attempts)
    (job,) = file.jobs.values()
    assert (job.phase, job.attempts, job.losses) == ("done", 1, 0)
    assert [a.outcome for a in attempts] == ["again", "done", "done"]
    assert attempts[0].error == "the process stopped meanwhile"


@pytest.mark.req("F10")
def test_a_stop_lets_running_work_finish_within_the_grace(tmp_path: Path) -> None:
    begun, go_on = threading.Event(), threading.Event()

    def slow(request: Received, peer: Peer) -> None:
        begun.set()
        go_on.wait(20)
        peer.respond(200, r.PDF)

    with serving(slow) as source, serving(answering(204)) as erp:
        config = plain(tmp_path, source, erp)
        with r.running(config) as process:
            r.announce(process, source.url("/f"))
            begun.wait(20)
            stopping = threading.Thread(target=process.worker.stop, kwargs={"grace_s": 20})
            stopping.start()
            go_on.set()
            stopping.join()
            file = r.file_of(process)
            assert r.leases_left(process) == 0
    assert [job.phase for job in file.jobs.values()] == ["done"]
    # Nothing new was begun: the message waits for the next start.
    assert [m.phase for m in file.messages.values()] == ["pending"]
    assert erp.requests == []


@pytest.mark.req("E5")
def test_a_message_under_way_at_a_hard_stop_is_unclear(tmp_path: Path) -> None:
    with serving(answering(200, r.PDF)) as source, serving(in_turn(hang, answering(204))) as erp:
        config = plain(tmp_path, source, erp)
        with r.running(config, grace_s=0) as process:
            r.announce(process, source.url("/f"))
            r.until(lambda: erp.requests)
        with r.running(config) as process:
            r.until(lambda: r.settled(process))
            outcomes = [a.outcome for a in r.rows(process.base.store, t.attempts)]
    assert outcomes == ["done", "unclear", "done"]
    assert len({request.header("webhook-id") for request in erp.requests}) == 1


@pytest.mark.req("C8")
def test_a_start_that_would_orphan_work_is_refused(tmp_path: Path) -> None:
    port = closed_port()
    with serving(answering(200, r.PDF)) as source:
        gone = f"http://127.0.0.1:{port}/"
        config = r.configured(
            tmp_path, source=source.host, destination=gone, recipe=NO_STEPS, erp=""
        )
        with r.running(config) as process:
            r.announce(process, source.url("/f"))
            r.until(lambda: r.messages_in(process, "waiting"))
    renamed = _renamed(config, "crm")
    refused = compose_run(renamed, has_web=False)
    assert isinstance(refused, Refused)
    (problem,) = refused.problems
    assert "destinations.erp" in str(problem)
    assert "1 unfinished" in str(problem)
    assert 'was = ["erp"]' in str(problem)
    with serving(answering(204)) as crm:
        place = replace(renamed.destinations[0], was=("erp",), url=crm.url("/"))
        with r.running(replace(renamed, destinations=(place,))) as process:
            r.until(lambda: r.settled(process))
        assert len(crm.requests) == 1


def _renamed(config: Config, name: str) -> Config:
    place = replace(config.destinations[0], name=name)
    recipe = config.recipes[0]
    told = replace(recipe, recipe=replace(recipe.recipe, notify=(name,)))
    return replace(config, destinations=(place,), recipes=(told,))


@pytest.mark.req("C7")
def test_each_start_under_a_changed_configuration_is_on_the_log(tmp_path: Path) -> None:
    with serving(answering(200)) as source, serving(answering(204)) as erp:
        for rate in ("1/s", "1/s", "2/s"):
            config = r.configured(
                tmp_path, source=source.host, destination=erp.url("/"), erp=f'rate = "{rate}"'
            )
            with r.running(config) as process:
                # On PostgreSQL an event has no position before the sequencer gave it one.
                r.until(partial(is_all_placed, process.base.store))
                with process.base.store.read() as connection:
                    found = event_log.read_after(connection, 0, limit=100)
    events = [positioned.recorded.event for positioned in found]
    assert [type(event) for event in events] == [
        InstallationCreated,
        RecipeDefined,
        ConfigurationChanged,
        ConfigurationChanged,
    ]
    assert [e.keys for e in events if isinstance(e, ConfigurationChanged)] == [
        (),
        ("destinations.erp.rate",),
    ]


@pytest.mark.req("F1")
def test_two_processes_cannot_have_one_store(tmp_path: Path, side: str) -> None:
    if side == "postgresql":
        pytest.skip("there any number of processes share a store")
    with serving(answering(200)) as source, serving(answering(204)) as erp:
        config = plain(tmp_path, source, erp)
        with r.running(config):
            refused = compose_run(config, has_web=False)
    assert isinstance(refused, Refused)
    assert "in use by another process" in str(refused.problems[0])


def test_a_defect_in_an_effect_is_a_failed_attempt(tmp_path: Path) -> None:
    with serving(answering(200)) as source, serving(answering(204)) as erp:
        config = plain(tmp_path, source, erp, download='retry = { base = "1ms", attempts = 2 }')
        with r.running(config) as process:
            shutil.rmtree(process.base.scratch.path)
            r.announce(process, source.url("/f"))
            r.until(lambda: r.settled(process))
            (job,) = r.file_of(process).jobs.values()
    assert job.error == "internal error (FileNotFoundError), 2 attempts"


@pytest.mark.req("F1")
def test_an_address_that_is_taken_ends_the_start_at_once_and_says_so(tmp_path: Path) -> None:
    with serving(answering(200)) as source, serving(answering(204)) as erp:
        plain(tmp_path, source, erp, installation=f'listen = "127.0.0.1:{erp.port}"')
        command = [sys.executable, "-m", "app.cli", "run", "-c", str(tmp_path / "laufzettel.toml")]
        env = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2]), "SECRET": r.SECRET}
        ended = subprocess.run(
            command, check=False, env=env, capture_output=True, text=True, timeout=25
        )
    assert ended.returncode == 1
    assert "cannot be listened on" in ended.stderr

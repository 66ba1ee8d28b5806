"""The fault table, row by row: the outcome of each, seen from outside.

On one process with SQLite, and on several with PostgreSQL, Valkey and S3: of these a few rows that
the seed chooses, and with ``--all-pairs`` all. A row asks its world (``tests.crash.harness``) alone;
what is special about a side is the way in which its database is taken away, in ``DOWN``.
"""

from __future__ import annotations

import base64
import hmac
import json
import os
import random
import resource
import sqlite3
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, closing, contextmanager
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import httpx
import psycopg
import pytest
import sqlalchemy as sa

from app.cli.demo.platform import Broken
from app.cli.demo.receiver import Behaviour
from app.clock import SystemClock
from domain import profiles
from domain.profiles import SourceEvent
from domain.schemes import Request, raw
from tests.crash.harness import World, assert_all_as_it_should_be, world
from tests.crash.places import Place, Shared
from tests.crash.zygotes import KILLED, SECRET, Zygote, until

pytestmark = pytest.mark.req("A8")
FULL_BYTES = 16 * 1024
SEED = int(os.environ.get("LAUFZETTEL_SEED", "20261130"))
SHARE = 0.2


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "place" in metafunc.fixturenames:
        dice = random.Random(f"{SEED} {metafunc.function.__name__}")
        is_chosen = metafunc.config.getoption("--all-pairs") or dice.random() < SHARE
        sides = ["embedded", "shared"] if is_chosen else ["embedded"]
        metafunc.parametrize("place", sides, indirect=True)


@pytest.fixture
def made(tmp_path: Path, zygote: Zygote, place: Place) -> Iterator[World]:
    """A started installation with its outside."""
    with world(tmp_path, zygote, place) as started:
        started.start()
        until(started.listens)
        yield started


def drained(made: World) -> None:
    """Wait until all is done, stop, and count."""
    until(made.is_drained)
    made.stop()
    assert_all_as_it_should_be(made)


def request_of(made: World, event: SourceEvent, *, age_s: float = 0) -> Request:
    at = SystemClock().now() - timedelta(seconds=age_s)
    hook = f"http://127.0.0.1:{made.port}/hooks/contracts"
    request = profiles.compose(made.config.sources[0].ready, event, hook, at)
    assert isinstance(request, Request)
    return request


def without_file_id(request: Request) -> Request:
    """The same delivery without the file's id, signed anew by hand."""
    headers = dict(request.headers)
    content = json.loads(request.body)
    del content["data"]["file_id"]
    body = json.dumps(content).encode()
    signed = f"{headers['webhook-id']}.{headers['webhook-timestamp']}.".encode() + body
    key = base64.b64decode(SECRET.removeprefix("whsec_"))
    proof = base64.b64encode(hmac.digest(key, signed, "sha256")).decode()
    changed = headers | {"webhook-signature": f"v1,{proof}"}
    return replace(request, headers=tuple(changed.items()), body=body)


def post(request: Request, body: bytes | None = None) -> httpx.Response:
    headers = [(name.encode("latin-1"), raw(value)) for name, value in request.headers]
    content = request.body if body is None else body
    return httpx.post(request.url, content=content, headers=headers, timeout=20)


def rows(made: World, query: str) -> list[Any]:
    """What its store holds, read beside it."""
    return made.place.rows(query)


def breaker(made: World) -> str:
    found = rows(made, "SELECT state FROM breakers WHERE scope = 'destination:erp'")
    return str(json.loads(found[0][0])["phase"]) if found else ""


def test_first_valid_event_effect_and_receipt_are_stored_together(made: World) -> None:
    answer = made.sender.once(made.version("F-1"))
    made.kill()
    assert answer.status == 202
    assert rows(made, "SELECT count(*) FROM receipts") == [(1,)]
    assert rows(made, "SELECT count(*) FROM jobs WHERE kind = 'download'") == [(1,)]
    made.drain()
    assert_all_as_it_should_be(made)


@pytest.mark.req("A1", "A2", "A6")
def test_wrong_signature_stale_time_broken_contract_store_nothing(made: World) -> None:
    event = made.version("F-1")
    good = request_of(made, event)
    assert post(good, good.body.replace(b"F-1", b"F-2")).status_code == 401
    assert post(request_of(made, event, age_s=600)).status_code == 401
    broken = post(without_file_id(good))
    assert broken.status_code == 422
    assert broken.json()["field"] == "/data/file_id"
    made.stop()
    assert rows(made, "SELECT count(*) FROM receipts") == [(0,)]
    assert rows(made, "SELECT count(*) FROM payloads") == [(0,)]
    refused = rows(made, "SELECT sum(count) FROM deliveries WHERE verdict = 'rejected'")
    assert refused == [(3,)]


@pytest.mark.parametrize("repeat, downloads", [("receipt", 1), ("retry", 2)])
def test_repeat_of_an_event_whose_work_failed_starts_what_was_set(
    tmp_path: Path, zygote: Zygote, place: Place, repeat: str, downloads: int
) -> None:
    once = f'repeat_of_failed = "{repeat}"'
    with world(tmp_path, zygote, place, source=once, attempts="attempts = 1, ") as made:
        made.start()
        until(made.listens)
        event = made.version("F-1")
        made.platform.misbehave("F-1", "1", Broken())
        first = made.sender.once(event)
        until(lambda: rows(made, "SELECT state FROM jobs") == [("dead",)])
        again = made.sender.once(event)
        assert (again.status, again.receipt_id) == (200, first.receipt_id)
        if repeat == "retry":
            until(lambda: bool(made.told("new")) and not made.missing())
        until(lambda: made.unfinished() == 0)
        made.stop()
        assert made.downloads() == {("F-1", "1"): downloads}


@pytest.mark.req("E2", "F9")
def test_restore_from_an_old_backup_the_same_ids_and_rising_sequences(made: World) -> None:
    made.stop()
    made.place.save()
    made.start()
    made.send(made.version("F-1"))
    until(made.is_drained)
    made.stop()
    made.place.bring_back()
    made.start()
    made.send(made.version("F-1"))
    until(lambda: len(made.told()) > 1)
    first, second = made.told()[:2]
    assert second["message_id"] == first["message_id"]
    assert second["sequence"] > first["sequence"]
    assert [entry["message_id"] for entry in made.told("new")] == [first["message_id"]]


def test_identical_event_again_gets_the_old_receipt_and_no_new_effect(made: World) -> None:
    event = made.version("F-1")
    first = made.sender.once(event)
    until(made.is_drained)
    again = made.sender.once(event)
    assert (first.status, again.status) == (202, 200)
    assert again.body["receipt"] == first.body["receipt"]
    drained(made)
    assert made.downloads() == {("F-1", "1"): 1}
    assert len(made.told()) == 1


def test_same_id_other_bytes_is_quarantined_and_changes_nothing(made: World) -> None:
    event = made.version("F-1")
    made.send(event)
    until(made.is_drained)
    before = rows(made, "SELECT * FROM files")
    assert post(request_of(made, replace(event, name="other.txt"))).status_code == 409
    assert rows(made, "SELECT * FROM files") == before
    conflicts = rows(made, "SELECT count(*) FROM deliveries WHERE verdict = 'conflict'")
    assert conflicts == [(1,)]
    drained(made)
    assert len(made.told()) == 1


@pytest.mark.req("A9")
def test_failure_before_the_commit_leaves_nothing_half_done(made: World) -> None:
    made.stop()
    # The first commits of a life are its own: the count is one that a delivery reaches.
    began = made.start("ledger.commit.before:8")
    until(lambda: made.listens() or began.is_over())
    event = made.version("F-1")
    while not began.is_over():
        answer = made.sender.once(event)
        if answer.status:
            event = made.version(f"F-{len(made.expected) + 1}")
    assert began.code == KILLED
    # Its workers are armed as well, and may not have come so far.
    made.kill()
    for file_id in made.expected:
        made.send(made.version(file_id))
    made.drain()
    assert_all_as_it_should_be(made)


@pytest.mark.req("A9")
def test_response_lost_after_the_commit_the_repeat_finds_the_receipt(made: World) -> None:
    made.stop()
    made.start("hooks.answer.before")
    event = made.version("F-1")
    # Asking whether it listens would be answered too, and so be the one that kills.
    until(lambda: made.sender.once(event).status == 0 and made.process.is_over())
    assert rows(made, "SELECT count(*) FROM receipts") == [(1,)]
    made.start()
    until(made.listens)
    again = made.sender.once(event)
    assert again.status == 200
    assert made.sender.once(event).body["receipt"] == again.body["receipt"]
    assert rows(made, "SELECT count(*) FROM receipts") == [(1,)]
    drained(made)


@pytest.mark.req("A10")
def test_twenty_equal_events_at_once_make_one_effect_and_one_receipt(made: World) -> None:
    request = request_of(made, made.version("F-1"))
    with ThreadPoolExecutor(20) as crowd:
        answers = list(crowd.map(post, [request] * 20))
    assert sorted(answer.status_code for answer in answers) == [200] * 19 + [202]
    assert len({answer.json()["receipt"]["id"] for answer in answers}) == 1
    until(lambda: not made.missing() and made.unfinished() == 0)
    made.stop()
    assert made.downloads() == {("F-1", "1"): 1}
    assert len(made.told()) == 1


def test_restart_with_the_same_database_earlier_receipts_decide(made: World) -> None:
    event = made.version("F-1")
    first = made.sender.once(event)
    made.kill()
    made.start()
    until(made.listens)
    again = made.sender.once(event)
    assert (again.status, again.body["receipt"]) == (200, first.body["receipt"])
    drained(made)


@pytest.mark.req("C4")
def test_late_event_for_an_older_version_leaves_the_newer_result(made: World) -> None:
    older, newer = made.version("F-1", 1), made.version("F-1", 2)
    made.send(newer)
    until(made.is_drained)
    assert made.sender.once(older).status == 202
    drained(made)
    assert rows(made, "SELECT verdict FROM receipts ORDER BY id") == [("accepted",), ("stale",)]
    assert rows(made, "SELECT current FROM files") == [("2",)]
    assert [entry["version"] for entry in made.told()] == ["2"]
    assert made.downloads() == {("F-1", "2"): 1}


@contextmanager
def locked(made: World) -> Iterator[None]:
    """Another program writes into the database and does not end."""
    with closing(sqlite3.connect(made.folder / "store.db", isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        yield
        other.execute("ROLLBACK")


@contextmanager
def held(made: World) -> Iterator[None]:
    """Another session has the receipts and does not end."""
    with psycopg.connect(made.place.database) as other:
        other.execute("LOCK TABLE receipts IN ACCESS EXCLUSIVE MODE")
        yield
        other.rollback()


@contextmanager
def away(made: World) -> Iterator[None]:
    """The server takes no connection to the database and has ended all that there were."""
    assert isinstance(made.place, Shared)
    server, name = made.place.services.postgres, sa.make_url(made.place.database).database
    server.execute(
        f"ALTER DATABASE {name} ALLOW_CONNECTIONS false",
        f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '{name}'",  # noqa: S608 - a name of ours
    )
    yield
    server.execute(f"ALTER DATABASE {name} ALLOW_CONNECTIONS true")


@contextmanager
def full(made: World) -> Iterator[None]:
    """No file of the program may grow: what a full disk does, for this one process."""
    if sys.platform != "linux":
        pytest.skip("only Linux limits a running process from outside")
    pid, kind = made.process.pid, resource.RLIMIT_FSIZE
    soft, hard = resource.prlimit(pid, kind)
    resource.prlimit(pid, kind, (FULL_BYTES, hard))
    yield
    resource.prlimit(pid, kind, (soft, hard))


DOWN: dict[str, tuple[Callable[[World], AbstractContextManager[None]], ...]] = {
    "embedded": (locked, full),
    "shared": (held, away),
}


@pytest.mark.req("A9", "A20")
@pytest.mark.parametrize("number", [0, 1])
def test_database_down_is_503_and_it_works_again_by_itself(
    made: World, number: int, request: pytest.FixtureRequest
) -> None:
    down = DOWN[request.node.callspec.params["place"]][number]
    made.send(made.version("F-1"))
    until(made.is_drained)
    event = made.version("F-2")
    with down(made):
        answer = post(request_of(made, event))
        assert answer.status_code == 503
        assert int(answer.headers["retry-after"]) > 0
        assert answer.elapsed.total_seconds() < 5
    made.send(event)
    drained(made)


@pytest.mark.req("A13")
def test_broker_down_or_emptied_acceptance_goes_on(made: World) -> None:
    if not isinstance(made.place, Shared):
        pytest.skip("the embedded default has its broker in the process: it is never away")
    broker = made.place.services.valkey
    broker.stop()
    try:
        made.send(*[made.version(f"F-{number}") for number in range(3)])
        until(lambda: all(answer.done() for answer in made.answers))
    finally:
        broker.start()
    made.send(*[made.version(f"F-{number}") for number in range(3, 6)])
    broker.empty()
    drained(made)
    assert made.told("repeat") == []


@pytest.mark.req("E4", "E6")
def test_destination_down_messages_wait_and_arrive_once_each(
    tmp_path: Path, zygote: Zygote, place: Place
) -> None:
    short = 'breaker = { consecutive = 3, open = "200ms" }'
    with world(tmp_path, zygote, place, destination=short) as made:
        made.receiver.misbehave(Behaviour(fail=503))
        made.start()
        made.send(*[made.version(f"F-{number}") for number in range(6)])
        until(lambda: len(made.told("failed")) >= 3)
        until(lambda: breaker(made) == "open")
        made.receiver.misbehave(Behaviour())
        drained(made)
        assert len(made.told("new")) == 6
        assert made.told("repeat") == []


@pytest.mark.req("D1")
def test_worker_killed_the_job_resumes_with_one_artifact_and_one_message(made: World) -> None:
    made.stop()
    made.send(made.version("F-1"))
    assert made.drain("runner.finish.before", "notify.send.after")
    assert_all_as_it_should_be(made)
    assert len(made.told("new")) == 1


def test_a_stop_in_order_ends_with_status_0(made: World) -> None:
    made.stop()

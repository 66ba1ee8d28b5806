"""Retention and the sweep: what is forgotten, what stays, and that nothing that is wanted goes."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from app.artifacts import Blobs, open_blobs
from app.clock import SettableClock, SystemClock
from app.ledger.requests import Order
from app.replay import replay
from app.store import condemned, leases
from app.store import tables as t
from app.store.engine import Store
from app.verify import verify_chain, verify_parts
from domain import commands as c
from domain.ids import derive
from jobs.sweep import Digests, Parts, Sweep, Swept
from tests import claiming
from tests.histories import FAR_MS, KEY, OPERATOR, History
from tests.installations import SOURCE, configured, rest_of

F1 = derive(KEY, "fil", "s", "F-1")
KEPT = SOURCE + '[retention]\nartifacts = "365d"\n'


@pytest.fixture
def history(store: Store) -> Iterator[History]:
    with History(store) as found:
        found.report("F-1", 1)
        found.drain()
        yield found


def parts(history: History, folder: Path, *, days: int, text: str = SOURCE) -> Parts:
    """What sweeps so many days from now, by the clock that the store's rows have."""
    clock = history.clock if history.store.backend == "sqlite" else SystemClock()
    now = clock.now() + timedelta(days=days)
    config = configured(folder, text + rest_of(SOURCE, ""))
    digests = Digests(history.ledger, history.store)
    blobs = open_blobs(f"file:{folder}/artifacts")
    blobs.guard(digests.spared)
    return Parts(config, history.store, history.ledger, blobs, SettableClock(now), digests)


def swept(history: History, folder: Path, *, days: int, text: str = SOURCE) -> Swept:
    """Sweep, after a dry run that must have said the same."""
    made = parts(history, folder, days=days, text=text)
    before = everything(history.store)
    foretold = Sweep(made, is_dry=True).run()
    assert everything(history.store) == before
    done = Sweep(made).run()
    # Of blobs it can only foretell those that were marked before.
    assert foretold == replace(done, blobs=foretold.blobs)
    assert Sweep(made).run().files == 0
    return done


def everything(store: Store) -> dict[str, list[Any]]:
    with store.read() as connection:
        return {
            table.name: list(connection.execute(sa.select(table)))
            for table in t.metadata.sorted_tables
        }


def column(store: Store, what: sa.Column[Any]) -> list[Any]:
    with store.read() as connection:
        return list(connection.execute(sa.select(what)).scalars())


def assert_sound(store: Store) -> None:
    assert replay(store).differences == []
    assert verify_chain(store).faults == []
    assert verify_parts(store).faults == []


def put(blobs: Blobs, folder: Path, data: bytes) -> str:
    path = folder / "new"
    path.write_bytes(data)
    digest = hashlib.sha256(data).hexdigest()
    blobs.put_file(path, digest)
    path.unlink()
    return digest


def let_a_day_pass(history: History) -> None:
    """Marks become due: on PostgreSQL their time is the server's."""
    change = t.condemned.update().values(since_ms=0, due_ms=0)
    history.ledger.operate(lambda connection, _: connection.execute(change))


@pytest.mark.req("A11", "B6")
def test_bodies_go_after_their_time_and_receipts_stay(history: History, tmp_path: Path) -> None:
    assert swept(history, tmp_path, days=29).payloads == 0
    assert swept(history, tmp_path, days=31).payloads == 1
    assert column(history.store, t.payloads.c.body) == [None]
    assert column(history.store, t.receipts.c.event_id) == ["e1"]
    assert_sound(history.store)


@pytest.mark.req("B6")
def test_a_source_may_keep_bodies_for_longer(history: History, tmp_path: Path) -> None:
    longer = SOURCE.replace("[sources.s.map]", '[sources.s.retention]\npayloads = "60d"\n[sources.s.map]')  # fmt: skip
    assert swept(history, tmp_path, days=31, text=longer).payloads == 0
    assert swept(history, tmp_path, days=61, text=longer).payloads == 1


@pytest.mark.req("B6", "E8")
def test_bytes_of_ended_messages_go_and_are_not_sent_again(
    history: History, tmp_path: Path
) -> None:
    done = swept(history, tmp_path, days=91)
    assert done.files == 1
    assert set(column(history.store, t.bodies.c.data)) == {None}
    message = column(history.store, t.messages.c.id)[0]
    order = c.ResolveMessage(stream=F1, cause=OPERATOR, message=message, outcome="resend")
    refused = history.submit(Order(order))[0]
    assert isinstance(refused, c.Refusal)
    assert "bytes" in refused.reason
    assert_sound(history.store)


@pytest.mark.req("B6")
def test_artifacts_of_a_deleted_file_go_and_a_restored_one_is_fetched_again(
    history: History, tmp_path: Path
) -> None:
    history.submit(history.deletion("F-1"))
    history.drain()
    assert swept(history, tmp_path, days=29).files == 0
    assert column(history.store, t.artifacts.c.id) != []
    swept(history, tmp_path, days=31)
    assert column(history.store, t.artifacts.c.id) == []
    assert_sound(history.store)

    history.submit(history.restoration("F-1"))
    history.drain()
    assert column(history.store, t.artifacts.c.id) != []
    assert set(column(history.store, t.files.c.state)) == {"completed"}
    assert_sound(history.store)


@pytest.mark.req("B6")
def test_artifacts_are_kept_unless_a_time_is_set(history: History, tmp_path: Path) -> None:
    swept(history, tmp_path, days=5000)
    assert column(history.store, t.artifacts.c.id) != []
    swept(history, tmp_path, days=366, text=KEPT)
    assert column(history.store, t.artifacts.c.id) == []
    assert_sound(history.store)


@pytest.mark.req("B9")
def test_a_file_on_hold_keeps_all_of_it(history: History, tmp_path: Path) -> None:
    history.submit(Order(c.HoldFile(stream=F1, cause=OPERATOR)))
    assert swept(history, tmp_path, days=5000, text=KEPT).files == 0
    assert column(history.store, t.artifacts.c.id) != []


@pytest.mark.req("D4")
def test_a_blob_without_a_reference_goes_a_day_after_it_was_marked(
    history: History, tmp_path: Path
) -> None:
    made = parts(history, tmp_path, days=1)
    digest = put(made.blobs, tmp_path, b"left by a crash")
    assert Sweep(made).run().condemned == 1
    assert Sweep(made).run() == Swept()
    assert made.blobs.exists(digest)
    let_a_day_pass(history)
    assert Sweep(made).run().blobs == 1
    assert not made.blobs.exists(digest)
    assert column(history.store, t.condemned.c.sha256) == []


@pytest.mark.req("D4")
def test_a_blob_that_is_stored_again_is_spared(history: History, tmp_path: Path) -> None:
    made = parts(history, tmp_path, days=1)
    digest = put(made.blobs, tmp_path, b"the same twice")
    Sweep(made).run()
    let_a_day_pass(history)
    put(made.blobs, tmp_path, b"the same twice")
    assert column(history.store, t.condemned.c.sha256) == []
    assert Sweep(made).run().blobs == 0
    assert made.blobs.exists(digest)


@pytest.mark.req("D4")
def test_a_blob_that_comes_again_after_a_sweep_died_between_blob_and_mark_stays(
    history: History, tmp_path: Path
) -> None:
    made = parts(history, tmp_path, days=1)
    digest = put(made.blobs, tmp_path, b"removed by a sweep that died")
    Sweep(made).run()
    let_a_day_pass(history)
    made.blobs.delete(digest)
    put(made.blobs, tmp_path, b"removed by a sweep that died")
    assert Sweep(made).run().blobs == 0
    assert made.blobs.exists(digest)


@pytest.mark.req("D4")
def test_a_blob_that_was_recorded_after_it_was_marked_stays(
    history: History, tmp_path: Path
) -> None:
    made = parts(history, tmp_path, days=1)
    recorded = column(history.store, t.artifacts.c.sha256)[0]
    history.ledger.operate(lambda x, _: condemned.mark(x, {recorded}, since_ms=0, due_ms=0))
    assert Sweep(made).run().blobs == 0
    assert column(history.store, t.condemned.c.sha256) == []


@pytest.mark.req("D4", "B9")
def test_a_blob_stays_while_work_is_under_way_that_began_before_its_mark(
    history: History, tmp_path: Path
) -> None:
    made = parts(history, tmp_path, days=1)
    digest = put(made.blobs, tmp_path, b"found by a worker")
    history.report("F-2", 1)
    job = next(j for j in column(history.store, t.jobs.c.id) if _is_open(history.store, j))
    hold = leases.Hold("w", 1, FAR_MS, 60_000)
    lease = history.ledger.operate(lambda x, _: claiming.claim_job(x, job, hold))
    assert lease is not None
    since_ms = lease.started_ms + 1
    history.ledger.operate(lambda x, _: condemned.mark(x, {digest}, since_ms=since_ms, due_ms=0))
    assert Sweep(made).run().blobs == 0
    history.ledger.operate(lambda x, _: leases.end(x, [lease]))
    assert Sweep(made).run().blobs == 1


def _is_open(store: Store, job: str) -> bool:
    with store.read() as connection:
        row = connection.execute(sa.select(t.jobs.c.state).where(t.jobs.c.id == job)).one()
    return bool(row.state == "ready")


@pytest.mark.req("B9")
def test_the_blobs_of_an_erased_file_wait_for_no_other_day(
    history: History, tmp_path: Path
) -> None:
    made = parts(history, tmp_path, days=1)
    history.erase("F-1")
    assert column(history.store, t.condemned.c.sha256) != []
    assert Sweep(made).run().blobs > 0
    assert column(history.store, t.condemned.c.sha256) == []

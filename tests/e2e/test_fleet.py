"""Several processes of each kind on PostgreSQL, Valkey and S3, killed at random all along."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import threading
from collections import Counter, defaultdict
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import pytest
import sqlalchemy as sa

from app.cli.demo.platform import Slow
from app.clock import SystemClock
from app.replay import replay
from app.store import tables as t
from app.store.engine import Store, open_store
from app.verify import verify_artifacts, verify_chain
from domain import profiles
from tests.brokers import Rabbit, Valkey, rabbit_server, valkey_server
from tests.buckets import bucket_or_skip
from tests.e2e.fleets import Fleet, Killer, fleet
from tests.runtimes import until
from tests.stores import Postgres, missing

OPEN = ("ready", "waiting", "pending", "unclear")


def unfinished(store: Store) -> int:
    with store.read() as connection:
        counts = [
            connection.execute(sa.select(sa.func.count()).where(table.c.state.in_(OPEN)))
            for table in (t.jobs, t.messages)
        ]
        leases = connection.execute(sa.select(sa.func.count()).select_from(t.leases))
        return sum(int(found.scalar_one()) for found in (*counts, leases))


def unplaced(store: Store) -> int:
    with store.read() as connection:
        return int(connection.execute(sa.text("SELECT count(*) FROM unsequenced")).scalar_one())


def flow(made: Fleet, *, files: int, seed: int, first: int = 0) -> None:
    """Offer the files, every fourth in two versions, and deliver each three times in any order."""
    dice = random.Random(seed)
    events = []
    for number in range(first, first + files):
        events.append(made.version(f"F-{number}"))
        if number % 4 == 0:
            events.append(made.version(f"F-{number}", 2))
    events *= 3
    dice.shuffle(events)
    made.send(events)


def judge(made: Fleet, store: Store) -> None:
    """Nothing lost, nothing doubled, every repeat on the wire the same, the log as it should be."""
    assert {answer.result().status for answer in made.answers} <= {200, 202}
    told = made.told()
    assert {entry["verdict"] for entry in told} <= {"new", "repeat", "old"}
    ids, bodies, last = defaultdict(set), defaultdict(set), {}
    for entry in told:
        ids[entry["file_id"], entry["version"], entry["type"]].add(entry["message_id"])
        bodies[entry["message_id"]].add(entry["body_sha256"])
        if entry["verdict"] == "new":
            last[entry["file_id"]] = entry["version"]
    assert {key: found for key, found in ids.items() if len(found) > 1} == {}
    assert {key: found for key, found in bodies.items() if len(found) > 1} == {}
    assert last == made.expected
    with store.read() as connection:
        names = connection.execute(
            sa.select(t.artifacts.c.stream, t.artifacts.c.name, t.artifacts.c.sha256)
        )
        doubled = Counter((row.stream, row.name, row.sha256) for row in names)
    assert max(doubled.values()) == 1
    outcome = replay(store)
    assert outcome.differences == []
    assert outcome.is_equal
    assert verify_chain(store).faults == []
    assert verify_artifacts(store, made.blobs).faults == []


@pytest.mark.req("A10")
@pytest.mark.req("B3")
@pytest.mark.req("D4")
@pytest.mark.req("E2")
@pytest.mark.req("F1")
@pytest.mark.timeout(4000)
def test_nothing_is_lost_or_doubled_while_processes_of_every_kind_are_killed(
    tmp_path: Path,
    postgres: Postgres,
    request: pytest.FixtureRequest,
    record_property: Callable[[str, object], None],
) -> None:
    is_full = request.config.getoption("--all-pairs", default=False)
    files, processes, most = (5000, 4, 1000) if is_full else (120, 2, 6)
    # A start takes seconds of processor time: eight of them killed too often do nothing else.
    every_s = 15.0 if is_full else 5.0
    seed = random.SystemRandom().randrange(10**6)
    record_property("seed", seed)
    sys.stdout.write(f"seed {seed}\n")
    url = postgres.fresh()
    for name in ("valkey", "s3"):
        (tmp_path / name).mkdir()
    with (
        valkey_server(tmp_path / "valkey") as valkey,
        bucket_or_skip(tmp_path / "s3") as bucket,
        fleet(tmp_path, database=url, broker=valkey.url, bucket=bucket) as made,
    ):
        crews = [made.start("web", processes), made.start("worker", processes)]
        made.await_web()
        with Killer(crews, random.Random(seed), every_s=every_s, most=most) as killer:
            flow(made, files=files, seed=seed)
            disturb(made, postgres, valkey, times=2 if is_full else 1)
            until(made.is_told, within_s=3000 if is_full else 300)
            # A fast machine may be through before the first one is due: it is given more to do.
            while not killer.killed:
                flow(made, files=8, seed=seed, first=len(made.expected))
                until(made.is_told, within_s=300)
        store = open_store(url)
        until(lambda: unfinished(store) == 0, within_s=120)
        until(lambda: unplaced(store) == 0, within_s=60)
        assert made.stop() == [0, 0]
        judge(made, store)
        sys.stdout.write(f"{killer.killed} killed, {figures(made, store)}\n")
        store.close()


def figures(made: Fleet, store: Store) -> str:
    """What came of it, for the page that keeps figures."""
    told = Counter(entry["verdict"] for entry in made.told())
    with store.read() as connection:
        counted = [
            f"{connection.execute(sa.select(sa.func.count()).select_from(table)).scalar_one()} {name}"
            for name, table in (
                ("receipts", t.receipts),
                ("events", t.events),
                ("artifacts", t.artifacts),
                ("messages", t.messages),
            )
        ]
    return ", ".join([f"{len(made.answers)} deliveries", *counted, f"on the wire {dict(told)}"])


def disturb(made: Fleet, postgres: Postgres, valkey: Valkey, *, times: int) -> None:
    """Restart the database and the broker, and empty the broker, each while work goes on."""
    for time in range(1, times + 1):
        part = len(made.answers) * time // (times + 1)
        until(lambda part=part: sum(a.done() for a in made.answers) >= part, within_s=2000)  # type: ignore[misc]
        postgres.restart()
        valkey.stop()
        valkey.start()
        valkey.empty()


@pytest.mark.req("F1", "A13")
@pytest.mark.timeout(900)
def test_a_fleet_whose_broker_is_rabbitmq_loses_nothing_when_that_is_restarted_empty(
    tmp_path: Path, postgres: Postgres, request: pytest.FixtureRequest
) -> None:
    if not request.config.getoption("--all-pairs"):
        pytest.skip("with --all-pairs: a node takes a quarter of a minute to start")
    if not Rabbit.is_installed():
        missing("rabbitmq-server is not installed")
    seed = random.SystemRandom().randrange(10**6)
    sys.stdout.write(f"seed {seed}\n")
    url = postgres.fresh()
    (tmp_path / "rabbit").mkdir()
    with (
        rabbit_server(tmp_path / "rabbit") as rabbit,
        fleet(tmp_path, database=url, broker=rabbit.url) as made,
    ):
        crews = [made.start("web", 2), made.start("worker", 2)]
        made.await_web()
        with Killer(crews, random.Random(seed), every_s=10.0, most=6) as killer:
            flow(made, files=150, seed=seed)
            until(lambda: sum(a.done() for a in made.answers) >= len(made.answers) // 2)
            rabbit.stop()
            until(lambda: all(a.done() for a in made.answers), within_s=300)
            rabbit.empty()
            rabbit.start()
            until(made.is_told, within_s=300)
        store = open_store(url)
        until(lambda: unfinished(store) == 0, within_s=120)
        until(lambda: unplaced(store) == 0, within_s=60)
        assert made.stop() == [0, 0]
        judge(made, store)
        sys.stdout.write(f"{killer.killed} killed, {figures(made, store)}\n")
        store.close()


@pytest.mark.req("A10")
def test_twenty_copies_at_once_to_four_processes_are_one_event(
    tmp_path: Path, postgres: Postgres
) -> None:
    with fleet(tmp_path, database=postgres.fresh()) as made:
        made.start("web", 4)
        made.start("worker", 1)
        made.await_web()
        place = made.config.installation
        url = f"http://{place.listen_host}:{place.listen_port}/hooks/contracts"
        event = made.version("F-1")
        start = threading.Barrier(20)

        def deliver(_: int) -> httpx.Response:
            request = profiles.compose(
                made.config.sources[0].ready, event, url, SystemClock().now(), ed25519=no_key
            )
            assert not isinstance(request, profiles.Refused)
            headers = {name: str(value) for name, value in request.headers}
            # A connection of its own, so that the kernel gives the copies to all four.
            with httpx.Client() as client:
                start.wait(30)
                return client.post(url, content=request.body, headers=headers)

        with ThreadPoolExecutor(20) as threads:
            answers = list(threads.map(deliver, range(20)))
        assert sorted(a.status_code for a in answers) == [200] * 19 + [202]
        assert len({a.json()["receipt"]["id"] for a in answers}) == 1
        until(made.is_told, within_s=60)
        assert made.stop() == [0, 0]
        assert made.downloads() == {("F-1", "1"): 1}
        assert [entry["verdict"] for entry in made.told()] == ["new"]


def no_key(_: bytes, __: bytes) -> bytes:
    raise AssertionError("the sample signs with a shared secret")


@pytest.mark.req("D1")
@pytest.mark.timeout(300)
def test_a_worker_that_was_stopped_past_its_lease_cannot_commit(
    tmp_path: Path, postgres: Postgres
) -> None:
    url = postgres.fresh()
    with fleet(tmp_path, database=url) as made:
        made.start("web", 1)
        zombie = made.start("worker", 1)
        made.await_web()
        event = made.version("F-1")
        made.platform.misbehave("F-1", "1", Slow(5.0))
        made.send([event])
        until(made.downloads)
        zombie.process.send_signal(signal.SIGSTOP)
        healthy = made.start("worker", 1)
        # Its lease runs out after a minute; then the other one takes the job and finishes it.
        until(made.is_told, within_s=150)
        store = open_store(url)
        until(lambda: unfinished(store) == 0)
        with store.read() as connection:
            before = connection.execute(sa.select(t.events.c.id)).all()
        zombie.process.send_signal(signal.SIGCONT)
        until(lambda: b"job.result_dropped" in (tmp_path / "fleet.log").read_bytes(), within_s=30)
        with store.read() as connection:
            assert connection.execute(sa.select(t.events.c.id)).all() == before
        assert healthy.process.poll() is None
        until(lambda: unplaced(store) == 0)
        assert made.stop() == [0, 0, 0]
        judge(made, store)
        store.close()


def starts(folder: Path) -> int:
    return (folder / "fleet.log").read_bytes().count(b"process.started")


def test_a_crew_replaces_the_dead_and_renews_one_after_the_other(
    tmp_path: Path, postgres: Postgres
) -> None:
    with fleet(tmp_path, database=postgres.fresh()) as made:
        crew = made.start("web", 2)
        made.await_web()
        # The one that answers need not be the one that is killed: both must have begun.
        until(lambda: starts(tmp_path) == 2, within_s=60)
        first = set(crew.members)
        os.kill(min(first), signal.SIGKILL)
        until(lambda: len(set(crew.members) - first) == 1, within_s=30)
        second = set(crew.members)
        until(lambda: starts(tmp_path) == 3, within_s=60)
        crew.process.send_signal(signal.SIGHUP)
        until(lambda: len(crew.members) == 2 and not second & set(crew.members), within_s=90)
        made.send([made.version("F-1")])
        assert made.answers[0].result(60).status == 202
        assert made.stop() == [0]


def test_halves_refuse_a_store_that_one_process_owns(tmp_path: Path) -> None:
    with fleet(tmp_path, database="sqlite:///store.db") as made:
        for kind in ("web", "worker"):
            ended = subprocess.run(
                [sys.executable, "-m", "app.cli", kind, "-c", str(made.config.path)],
                env=made.environ,
                capture_output=True,
                text=True,
                check=False,
            )
            assert ended.returncode == 2
            assert "laufzettel run" in ended.stderr

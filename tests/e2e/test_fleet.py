"""Several processes of each kind on PostgreSQL, Valkey and S3, killed at random all along."""

from __future__ import annotations

import random
import sys
from collections import Counter, defaultdict
from collections.abc import Callable
from pathlib import Path

import pytest
import sqlalchemy as sa

from app.replay import replay
from app.store import tables as t
from app.store.engine import Store, open_store
from app.verify import verify_artifacts, verify_chain
from tests.brokers import Valkey, valkey_server
from tests.e2e.fleets import Fleet, Killer, bucket_or_skip, fleet
from tests.runtimes import until
from tests.stores import Postgres

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


def flow(made: Fleet, *, files: int, seed: int) -> None:
    """Offer the files, every fourth in two versions, and deliver each three times in any order."""
    dice = random.Random(seed)
    events = []
    for number in range(files):
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
        with Killer(crews, random.Random(seed), every_s=5.0, most=most) as killer:
            flow(made, files=files, seed=seed)
            disturb(made, postgres, valkey, times=2 if is_full else 1)
            until(made.is_told, within_s=3000 if is_full else 300)
        store = open_store(url)
        until(lambda: unfinished(store) == 0, within_s=120)
        until(lambda: unplaced(store) == 0, within_s=60)
        assert made.stop() == [0, 0]
        assert killer.killed > 0
        judge(made, store)
        store.close()


def disturb(made: Fleet, postgres: Postgres, valkey: Valkey, *, times: int) -> None:
    """Restart the database and the broker, and empty the broker, each while work goes on."""
    for time in range(1, times + 1):
        part = len(made.answers) * time // (times + 1)
        until(lambda part=part: sum(a.done() for a in made.answers) >= part, within_s=2000)  # type: ignore[misc]
        postgres.restart()
        valkey.stop()
        valkey.start()
        valkey.empty()

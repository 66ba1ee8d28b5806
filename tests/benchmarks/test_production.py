"""PostgreSQL and Valkey with a process for each side, and two other ways to do the same work.

Every figure of this page is taken on the same two cores, with the load generator, the platform and
the receiver on them too; what stands behind "ratio" was measured in the same run.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import psutil
import pytest

from tests.benchmarks.client import Load, apply, send_all
from tests.benchmarks.deliveries import Wish
from tests.benchmarks.figures import Figures, middle
from tests.benchmarks.places import Measured, Peers, bare, module, peers, production
from tests.brokers import valkey_server
from tests.stores import Postgres

ROUNDS = 3
COUNT = 2000
FILES = 300
ALONE = 30


@dataclass(frozen=True, slots=True)
class Services:
    """The real parts: a database that syncs its commits, and a broker."""

    postgres: Postgres
    broker: str


@dataclass(frozen=True, slots=True)
class Flow:
    """What one way of doing the work reached."""

    files_per_s: float
    accepted_per_s: float
    cpu_ms: float


@pytest.fixture(scope="module")
def services(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Services]:
    postgres = Postgres()
    postgres.execute("ALTER SYSTEM SET fsync = on", "SELECT pg_reload_conf()")
    try:
        with valkey_server(tmp_path_factory.mktemp("valkey")) as broker:
            yield Services(postgres, broker.url)
    finally:
        postgres.stop()


@pytest.mark.timeout(600)
@pytest.mark.req("A9", "F1")
def test_acceptance_on_postgresql_costs_a_small_multiple_of_verifying(
    tmp_path: Path, services: Services, figures: Figures
) -> None:
    place = {"database": services.postgres.fresh(), "broker": services.broker}
    with bare(tmp_path) as against, production(tmp_path, **place, has_worker=False) as ours:
        _per_s(against, "warm", 500), _per_s(ours, "warm", 500)
        pairs = [(_per_s(against, f"b{n}"), _per_s(ours, f"o{n}")) for n in range(ROUNDS)]
        resident_mb = ours.resident_mb
    ratio = middle(mine / other for other, mine in pairs)
    other, mine = (middle(pair[side] for pair in pairs) for side in (0, 1))
    figures.add(
        "acceptance, PostgreSQL, durable, against the bare handler",
        f"{ratio:.2f}",
        goal="≥ 0.25",
        is_met=ratio >= 0.25,
        more=f"{mine:.0f}/s against {other:.0f}/s",
    )
    figures.add(
        f"resident memory of a web process after {ROUNDS * COUNT + 500:,} deliveries",
        f"{resident_mb:.0f} MB",
        goal="≤ 150 MB",
        is_met=resident_mb <= 150,
    )


def _per_s(measured: Measured, prefix: str, count: int = COUNT) -> float:
    told = apply(Load(measured.port, Wish(count, prefix)))
    assert set(told.statuses) == {"202"}
    return told.per_s


@pytest.mark.timeout(900)
@pytest.mark.req("E1", "F1")
def test_files_flow_beside_the_same_work_written_by_hand_and_on_workflows(
    tmp_path: Path, services: Services, figures: Figures
) -> None:
    with peers() as outside:
        with _ours(tmp_path, outside, services) as ours:
            mine = _flowed(ours, outside, "ours")
            latency_ms = _latency_ms(ours, outside)
        with _by_hand(tmp_path, outside, services) as other:
            by_hand = _flowed(other, outside, "hand")
        with _on_workflows(tmp_path, outside, services) as other:
            workflows = _flowed(other, outside, "workflows")
    _note(figures, mine, by_hand, workflows)
    figures.add(
        "accept to message, idle system, PostgreSQL and Valkey, p50",
        f"{middle(latency_ms):.0f} ms",
        goal="≤ 20 ms",
        is_met=middle(latency_ms) <= 20,
        more=f"p90 {sorted(latency_ms)[int(ALONE * 0.9)]:.0f} ms",
    )


@contextmanager
def _ours(folder: Path, outside: Peers, services: Services) -> Iterator[Measured]:
    database = services.postgres.fresh()
    with production(folder, outside.host, database=database, broker=services.broker) as found:
        yield found


@contextmanager
def _by_hand(folder: Path, outside: Peers, services: Services) -> Iterator[Measured]:
    arguments = (services.broker, f"http://{outside.host}/hooks")
    with ExitStack() as opened:
        name = "tests.benchmarks.handwritten"
        web, _, port = opened.enter_context(module(name, "web", *arguments))
        worker, _, _ = opened.enter_context(module(name, "worker", *arguments))
        yield Measured(port, (psutil.Process(web.pid), psutil.Process(worker.pid)), folder)


@contextmanager
def _on_workflows(folder: Path, outside: Peers, services: Services) -> Iterator[Measured]:
    services.postgres.execute("CREATE DATABASE workflows")
    arguments = (services.postgres.url("workflows"), f"http://{outside.host}/hooks")
    with module("tests.benchmarks.workflows", *arguments) as (process, _, port):
        yield Measured(port, (psutil.Process(process.pid),), folder)


def _flowed(measured: Measured, outside: Peers, prefix: str) -> Flow:
    """A first load to warm up, then the one that counts."""
    for name, count in ((f"{prefix}-warm", 30), (prefix, FILES)):
        before_s = measured.cpu_s
        told = apply(Load(measured.port, Wish(count, name, outside.host), connections=16))
        assert set(told.statuses) == {"202"}
        came = outside.await_messages(count)
    took_s = max(came.values()) - told.began_s
    return Flow(FILES / took_s, told.per_s, (measured.cpu_s - before_s) / FILES * 1000)


def _latency_ms(measured: Measured, outside: Peers) -> list[float]:
    """One file at a time, each after the system has come to rest."""
    took_ms = []
    for number in range(ALONE):
        outside.rest()
        told = send_all(Load(measured.port, Wish(1, f"alone{number}", outside.host), 1))
        (came_s,) = outside.await_messages(1).values()
        took_ms.append((came_s - told.began_s) * 1000)
    return took_ms


def _note(figures: Figures, mine: Flow, by_hand: Flow, workflows: Flow) -> None:
    figures.add(
        "whole flow on PostgreSQL and Valkey",
        f"{mine.files_per_s:.0f} files/s",
        goal="above the hand-written",
        is_met=mine.files_per_s > by_hand.files_per_s,
        more=f"{mine.cpu_ms:.1f} ms of processor time a file (web and worker); accepted "
        f"meanwhile {mine.accepted_per_s:.0f}/s",
    )
    for name, other, goal in (("by hand, nothing stored", by_hand, 0.0), ("DBOS", workflows, 8.0)):
        ratio = mine.files_per_s / other.files_per_s
        wanted = {"goal": f"≥ {goal:.0f} times", "is_met": ratio >= goal} if goal else {}
        figures.add(
            f"ours against the same flow: {name}",
            f"{ratio:.2f}",
            more=f"{other.files_per_s:.0f} files/s, {other.cpu_ms:.1f} ms of processor time a "
            f"file; accepted meanwhile {other.accepted_per_s:.0f}/s",
            **wanted,
        )

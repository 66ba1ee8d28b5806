"""The rows of breakers, which every process writes: two of them may want them in any order."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import sqlalchemy as sa

from app.ledger.requests import Answer
from app.store import breakers
from app.store.engine import Connection
from domain.breaker import BreakerPolicy, Closed, load
from jobs.runner.circuits import Circuits, Lesson
from tests.contract.test_interleavings import World
from tests.outboxes import idle
from tests.runtimes import configured, version_accepted
from tests.stores import Postgres

POLICY = BreakerPolicy(consecutive=100)
SCOPES = ("destination:erp", "destination:crm")


Then = Callable[[Connection, int, tuple[Answer, ...]], int]


def failing(*scopes: str, meet: threading.Barrier) -> Then:
    """A failure in each scope, in this order; at first it waits between for the others."""
    tries = itertools.count(1)

    def learn(connection: Connection, now_ms: int, _: tuple[Answer, ...]) -> int:
        number = next(tries)
        for scope in scopes:
            Circuits().learn(connection, scope, POLICY, now_ms, is_success=False)
            if number == 1 and scope == scopes[0]:
                meet.wait(20)
        return number

    return learn


@pytest.mark.req("E6", "B1")
def test_two_processes_that_learn_of_two_breakers_in_opposite_order_both_get_through(
    postgres: Postgres,
) -> None:
    url = postgres.fresh()
    world = World(url)
    try:
        first, second = world.ledgers
        facts = [
            version_accepted(ledger, "http://x/f", file_id=f"F-{number}")
            for number, ledger in enumerate((first, first, second))
        ]
        alone, both = threading.Barrier(1), threading.Barrier(2)
        first.conclude((facts[0],), failing(*SCOPES, meet=alone)).result(20)
        one = first.conclude((facts[1],), failing(*SCOPES, meet=both))
        other = second.conclude((facts[2],), failing(*reversed(SCOPES), meet=both))
        # The server broke one of them off, and that one was tried again.
        assert sorted((one.result(60)[1], other.result(60)[1])) == [1, 2]
        with world.stores[0].read() as connection:
            phases = [load(POLICY, breakers.load(connection, scope)).phase for scope in SCOPES]
        assert [phase.in_a_row for phase in phases if isinstance(phase, Closed)] == [3, 3]
    finally:
        world.close()
        postgres.drop(url)


@pytest.mark.req("E6", "B1")
def test_an_operational_write_that_the_server_breaks_off_is_made_again(postgres: Postgres) -> None:
    url = postgres.fresh()
    world = World(url)
    both, tries = threading.Barrier(2), itertools.count(1)

    def write(scopes: tuple[str, ...]) -> Callable[[Connection, int], int]:
        learn = failing(*scopes, meet=both)
        return lambda connection, now_ms: learn(connection, now_ms, ())

    def unknown(connection: Connection, now_ms: int) -> None:
        for scope in SCOPES:
            breakers.save(connection, scope, "", now_ms)

    def unserializable(connection: Connection, now_ms: int) -> int:
        breakers.save(connection, "source:x", f"{next(tries)}", now_ms)
        if next(tries) < 4:
            raised = "DO $$ BEGIN RAISE EXCEPTION 'x' USING ERRCODE = '40001'; END $$"
            connection.execute(sa.text(raised))
        return now_ms

    try:
        first, second = world.ledgers
        # The rows must be there, or nothing is locked that is not yet another's.
        first.operate(unknown)
        with ThreadPoolExecutor(2) as threads:
            one = threads.submit(first.operate, write(SCOPES))
            other = threads.submit(second.operate, write(SCOPES[::-1]))
            assert sorted((one.result(60), other.result(60))) == [1, 2]
        assert first.operate(unserializable)
        with world.stores[0].read() as connection:
            states = breakers.load_all(connection)
        phases = [load(POLICY, states[scope]).phase for scope in SCOPES]
        assert [phase.in_a_row for phase in phases if isinstance(phase, Closed)] == [2, 2]
        assert states["source:x"] == "3"
    finally:
        world.close()
        postgres.drop(url)


@pytest.mark.req("E6")
def test_what_a_transaction_taught_that_came_to_nothing_was_never_learnt(tmp_path: Path) -> None:
    circuits = Circuits()
    config = configured(tmp_path, source="127.0.0.1:1", destination="http://127.0.0.1:2/")

    def learnt(at_ms: int, *, is_success: bool) -> None:
        def learn(connection: Connection, _: int) -> Lesson:
            return circuits.learn(connection, SCOPES[0], POLICY, at_ms, is_success=is_success)

        circuits.keep(base.ledger.operate(learn))

    def lost(at_ms: int, *, is_success: bool) -> None:
        def learn(connection: Connection, _: int) -> None:
            circuits.learn(connection, SCOPES[0], POLICY, at_ms, is_success=is_success)
            raise ZeroDivisionError

        with pytest.raises(ZeroDivisionError):
            base.ledger.operate(learn)

    with idle(config) as base:
        learnt(1, is_success=True)
        lost(2, is_success=True)  # would have been kept back
        learnt(3, is_success=True)  # kept back
        lost(4, is_success=False)  # would have been written with what was kept back
        learnt(5, is_success=False)
        with base.store.read() as connection:
            phase = load(POLICY, breakers.load(connection, SCOPES[0])).phase
    assert isinstance(phase, Closed)
    assert [(bucket.good, bucket.bad) for bucket in phase.buckets] == [(2, 1)]

"""The rows of breakers, which every process writes: two of them may want them in any order."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable

import pytest

from app.ledger.requests import Answer
from app.store import breakers
from app.store.engine import Connection
from domain.breaker import BreakerPolicy, Closed, load
from jobs.runner.circuits import Circuits
from tests.contract.test_interleavings import World
from tests.runtimes import version_accepted
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

"""A destination's slots and rate, held by workers that know nothing of each other."""

from __future__ import annotations

import threading
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from app.compose import Base
from app.store import leases
from app.store import tables as t
from app.store.engine import Connection
from app.store.shared_tables import slots
from jobs import reaper
from jobs.runner.claims import Claim, Claims, Wanted
from jobs.runner.gate import Gate
from jobs.runner.terms import terms_of
from tests import runtimes as r
from tests.outboxes import idle, pile_up
from tests.stores import Postgres

NOBODY = "http://127.0.0.1:2/"


def worker(base: Base, owner: str) -> Claims:
    return Claims(
        gate=Gate(terms_of(base.config)),
        owner=owner,
        incarnation=base.ledger.book.incarnation,
        numbers=base.ledger.numbers,
        recipe_name=lambda _, digest: digest,
    )


def waiting(base: Base, count: int) -> list[str]:
    pile_up(base.ledger, [f"F-{n}" for n in range(count)])
    return [row.id for row in r.rows(base.store, t.messages)]


@pytest.mark.req("E10")
def test_claims_made_at_the_same_moment_never_take_more_slots_than_there_are(
    postgres: Postgres, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = postgres.fresh()
    monkeypatch.setattr(r, "DATABASE", url)
    config = r.configured(
        tmp_path,
        source="127.0.0.1:1",
        destination=NOBODY,
        recipe="transforms = []",
        erp="concurrency = 3",
    )
    meet = threading.Barrier(8)

    def claimed(each: tuple[Claims, str]) -> Claim | None:
        def claim(connection: Connection, now_ms: int) -> Claim | None:
            made = each[0].take(connection, now_ms, Wanted(each[1], "message"))
            # None is committed before all have been decided: none sees another's lease.
            meet.wait(30)
            return made

        return base.ledger.operate(claim)

    with idle(config) as base:
        works = waiting(base, 16)
        workers = [worker(base, "one"), worker(base, "two")]
        pairs = [(workers[n % 2], work) for n, work in enumerate(works)]
        # The rows of the slots are there from then on.
        base.ledger.operate(lambda c, ms: _tried(workers[0], c, ms, works[0]))
        with ThreadPoolExecutor(8) as threads:
            first = [claim for claim in threads.map(claimed, pairs[:8]) if claim]
            full = [claim for claim in threads.map(claimed, pairs[8:]) if claim]
            base.ledger.operate(lambda c, _: leases.end(c, [claim.lease for claim in first]))
            again = [claim for claim in threads.map(claimed, pairs[:8]) if claim]
            # A release that knows no slots ended these leases.
            base.ledger.operate(lambda c, _: c.execute(t.leases.delete()))
            parts = reaper.Parts(
                base.ledger, base.store, workers[0].gate, base.clock, base.metrics, "reaper"
            )
            mender = reaper.Reaper(parts)
            with base.store.read() as connection:
                taken = connection.execute(slots.select()).all()
            mender.round()
            mender.round()
            after = [claim for claim in threads.map(claimed, pairs[:8]) if claim]
    postgres.drop(url)
    assert (len(first), len(full), len(again), len(after)) == (3, 0, 3, 3)
    assert {claim.lease.owner for claim in first} <= {"one", "two"}
    assert Counter(bool(row.work) for row in taken) == {True: 3}


def _tried(claims: Claims, connection: Connection, now_ms: int, work: str) -> None:
    made = claims.take(connection, now_ms, Wanted(work, "message"))
    assert made is not None
    leases.end(connection, [made.lease])


@pytest.mark.req("E10")
@pytest.mark.usefixtures("either_database")
def test_a_rate_is_one_for_all_workers_and_for_those_that_were_stopped(tmp_path: Path) -> None:
    config = r.configured(
        tmp_path,
        source="127.0.0.1:1",
        destination=NOBODY,
        recipe="transforms = []",
        erp='rate = "6/m"',
    )

    def claims(connection: Connection, now_ms: int) -> int:
        made = 0
        for number, work in enumerate(works):
            # Each claim by a worker that was just started.
            found = worker(base, f"w{number}").take(connection, now_ms, Wanted(work, "message"))
            made += found is not None
        return made

    def undone(connection: Connection, now_ms: int) -> int:
        assert claims(connection, now_ms) == 1
        raise ZeroDivisionError

    with idle(config) as base:
        works = waiting(base, 4)
        with pytest.raises(ZeroDivisionError):
            base.ledger.operate(undone)
        # What came to nothing has used nothing up.
        assert base.ledger.operate(claims) == 1
        assert base.ledger.operate(claims) == 0

"""Two connections, two Ledgers, one database: what must hold however their steps fall."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import Future
from typing import Any

import psycopg
import pytest
import sqlalchemy as sa

from app.clock import SystemClock, SystemDice
from app.ledger import Ledger
from app.ledger.book import Book
from app.ledger.requests import Accepted, Control, Order, Repeated
from app.store import locks, sequencer
from app.store import tables as t
from app.store.engine import Store, open_store
from app.store.errors import StoreUnavailableError
from app.store.leases import Hold
from app.verify import verify_chain
from domain.commands import CancelJob, Cause
from domain.installation import RecipeDefined
from domain.recipes import Recipe
from tests import claiming
from tests.runtimes import until, version_accepted
from tests.stores import Postgres

RECIPE = Recipe("all", ("contracts",))
RELOAD = "SELECT pg_reload_conf()"
BOSS = Cause("operator", operator="ada", reason="test")


class World:
    """A database with two Ledgers on it, as two processes have, and connections beside them."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.stores = [open_store(url), open_store(url)]
        self.ledgers = [self._ledger(store) for store in self.stores]
        form = RECIPE.canonical.decode()
        defined = RecipeDefined(at_ms=0, digest=RECIPE.digest, form=form)
        for ledger in self.ledgers:
            ledger.submit(Control(defined, Cause("system"))).result(10)

    def _ledger(self, store: Store) -> Ledger:
        book = Book(b"k" * 32, 1, (RECIPE,))
        ledger = Ledger(store, book, SystemClock(), SystemDice())
        ledger.start()
        return ledger

    def connect(self) -> psycopg.Connection[Any]:
        """A session of someone else's."""
        return psycopg.connect(self.url)

    def count(self, table: sa.Table) -> int:
        with self.stores[0].read() as connection:
            query = sa.select(sa.func.count()).select_from(table)
            return int(connection.execute(query).scalar_one())

    def sequence(self, owner: str = "test") -> int:
        """Give positions to what is final, in as many rounds as it takes."""
        placed = 0
        while True:
            with self.stores[0].writing.begin() as connection:
                term = sequencer.lead(connection, owner)
                assert term is not None
                found = sequencer.sequence(connection, term, limit=500) or 0
            placed += found
            if not found:
                return placed

    def close(self) -> None:
        for ledger in self.ledgers:
            ledger.close()
        for store in self.stores:
            store.close()


@pytest.fixture
def world(postgres: Postgres) -> Iterator[World]:
    url = postgres.fresh()
    made = World(url)
    yield made
    made.close()
    postgres.drop(url)


def held(world: World, stream: str) -> psycopg.Connection[Any]:
    """A session that holds the lock of a stream, as a slow batch of another process does."""
    other = world.connect()
    other.execute("SELECT pg_advisory_xact_lock(%s)", [locks.lock_key(stream)])
    return other


def backends(world: World, wait: str) -> list[int]:
    """The sessions that wait for this."""
    with world.connect() as connection:
        query = "SELECT pid FROM pg_stat_activity WHERE wait_event = %s"
        found = connection.execute(query, [wait]).fetchall()
    return [row[0] for row in found]


@pytest.mark.req("A7")
@pytest.mark.req("A10")
def test_one_event_id_about_two_files_in_two_processes_is_one_event(world: World) -> None:
    for number in range(20):
        pair = [
            version_accepted(
                ledger, "http://x/f", file_id=f"F-{number}-{n}", event_id=f"E-{number}"
            )
            for n, ledger in enumerate(world.ledgers)
        ]
        futures = [each.submit(a) for each, a in zip(world.ledgers, pair, strict=True)]
        answers = [future.result(20)[0] for future in futures]
        assert sorted(type(a).__name__ for a in answers) == ["Accepted", "Repeated"]
        receipts = {a.receipt.id for a in answers if isinstance(a, Accepted | Repeated)}
        assert len(receipts) == 1
    assert world.count(t.receipts) == 20
    assert world.count(t.files) == 20


@pytest.mark.req("F2")
@pytest.mark.req("D1")
def test_a_cancelled_job_is_not_claimed_and_a_claimed_one_learns_of_it(world: World) -> None:
    first, second = world.ledgers
    for number in range(20):
        accept = version_accepted(first, "http://x/f", file_id=f"F-{number}")
        first.submit(accept).result(10)
        with world.stores[0].read() as connection:
            query = sa.select(t.jobs.c.id).where(t.jobs.c.stream == accept.stream)
            job = str(connection.execute(query).scalar_one())
        cancelling = first.submit(Order(CancelJob(stream=accept.stream, cause=BOSS, job=job)))
        claim = second.operate(
            lambda c, now_ms, job=job: claiming.claim_job(c, job, Hold("w", 1, now_ms, 60_000))  # type: ignore[misc]
        )
        cancelling.result(10)
        with world.stores[0].read() as connection:
            row = connection.execute(sa.select(t.jobs).where(t.jobs.c.id == job)).one()
        if claim is None:
            assert row.state == "cancelled"
        else:
            assert (row.state, row.asked) == ("ready", True)


@pytest.mark.req("A9")
def test_a_commit_whose_answer_is_lost_is_found(world: World, postgres: Postgres) -> None:
    first, second = world.ledgers
    accept = version_accepted(first, "http://x/f")
    # Commits wait for a standby that is not there: the server ends the wait of one that is told to
    # go, and the transaction is committed though nobody was answered.
    postgres.execute("ALTER SYSTEM SET synchronous_standby_names = 'nobody'", RELOAD)
    try:
        answering = first.submit(accept)
        pid = until(lambda: backends(world, "SyncRep"))[0]
        with world.connect() as connection:
            connection.execute("SELECT pg_terminate_backend(%s)", [pid])
            connection.rollback()
        postgres.execute("ALTER SYSTEM RESET synchronous_standby_names", RELOAD)
        assert isinstance(answering.result(20)[0], Accepted)
    finally:
        postgres.execute("ALTER SYSTEM RESET synchronous_standby_names", RELOAD)
    assert isinstance(second.submit(accept).result(10)[0], Repeated)
    assert world.count(t.receipts) == 1
    assert world.sequence() == world.count(t.events)


@pytest.mark.req("A9")
def test_a_connection_that_breaks_before_the_commit_leaves_nothing(world: World) -> None:
    first, _ = world.ledgers
    accept = version_accepted(first, "http://x/f")
    with held(world, accept.stream):
        waiting = first.submit(accept)
        pid = until(lambda: backends(world, "advisory"))[0]
        with world.connect() as connection:
            connection.execute("SELECT pg_terminate_backend(%s)", [pid])
        with pytest.raises(StoreUnavailableError):
            waiting.result(20)
    assert world.count(t.receipts) == 0
    assert isinstance(first.submit(accept).result(10)[0], Accepted)


@pytest.mark.req("A9")
def test_a_lock_that_another_holds_too_long_is_answered_in_time(world: World) -> None:
    first, second = world.ledgers
    accept = version_accepted(first, "http://x/f")
    other = version_accepted(second, "http://x/f", file_id="F-2")
    with held(world, accept.stream):
        waiting = first.submit(accept)
        assert isinstance(second.submit(other).result(10)[0], Accepted)
        with pytest.raises(StoreUnavailableError):
            waiting.result(20)
    assert isinstance(first.submit(accept).result(10)[0], Accepted)


@pytest.mark.req("B1")
def test_a_deadlock_is_tried_again(world: World) -> None:
    """A foreign session locks a receipt's key and then the stream: the Ledger does the reverse."""
    first, _ = world.ledgers
    first.submit(version_accepted(first, "http://x/f")).result(10)
    again = version_accepted(first, "http://x/f", number=2)
    with world.connect() as other:
        # The file's row, which the Ledger updates behind the lock of the stream.
        other.execute("SELECT 1 FROM files WHERE stream = %s FOR UPDATE", [again.stream])
        answering: Future[Any] = first.submit(again)
        until(lambda: backends(world, "transactionid"))
        done = threading.Event()

        def lock() -> None:
            # Whom the server picks is its choice; either way the Ledger's answer comes.
            try:
                key = [locks.lock_key(again.stream)]
                other.execute("SELECT pg_advisory_xact_lock(%s)", key)
                other.rollback()
            except psycopg.errors.DeadlockDetected:
                other.rollback()
            done.set()

        threading.Thread(target=lock, daemon=True).start()
        assert isinstance(answering.result(20)[0], Accepted)
        assert done.wait(20)


# -- the sequencer -------------------------------------------------------------------------------


@pytest.mark.req("B1")
def test_nothing_is_placed_above_a_transaction_that_may_still_write(world: World) -> None:
    first, _ = world.ledgers
    assert world.sequence() == 1
    with world.connect() as slow:
        slow.execute("SELECT pg_current_xact_id()")
        first.submit(version_accepted(first, "http://x/f")).result(10)
        assert world.sequence() == 0
        slow.rollback()
    assert world.sequence() == 1
    assert verify_chain(world.stores[0]).faults == []


@pytest.mark.req("B1")
def test_a_writer_in_another_database_holds_nothing_up_for_ever(
    world: World, postgres: Postgres
) -> None:
    first, _ = world.ledgers
    world.sequence()
    with psycopg.connect(postgres.url("postgres")) as stranger:
        stranger.execute("SELECT pg_current_xact_id()")
        first.submit(version_accepted(first, "http://x/f")).result(10)
        # The frontier is the server's, so its age is what an operator is warned of.
        assert world.sequence() == 0
        with world.stores[0].read() as connection:
            _, pid = sequencer.frontier_age_s(connection)
        assert pid == stranger.info.backend_pid
        stranger.rollback()
    assert world.sequence() == 1


@pytest.mark.req("B1")
def test_a_pinned_snapshot_does_not_hold_the_order_up(world: World) -> None:
    first, _ = world.ledgers
    world.sequence()
    with world.connect() as reader:
        reader.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
        reader.execute("SELECT count(*) FROM events")
        first.submit(version_accepted(first, "http://x/f")).result(10)
        assert world.sequence() == 1


@pytest.mark.req("B1")
def test_transactions_are_ordered_as_numbers_not_as_texts(world: World) -> None:
    """Around a power of ten the order of texts is another one."""
    first, _ = world.ledgers
    with world.connect() as session:
        session.autocommit = True

        def next_xid() -> int:
            row = session.execute("SELECT pg_current_xact_id()::text").fetchone()
            assert row is not None
            return int(row[0])

        now = next_xid()
        power = 10 ** len(str(now))
        if power - now > 20_000:
            power = (now // 1000 + 1) * 1000
        while next_xid() < power - 4:
            pass
    for number in range(1, 12):
        first.submit(version_accepted(first, "http://x/f", number=number)).result(10)
    world.sequence()
    with world.stores[0].read() as connection:
        joined = t.positions.join(t.events, t.events.c.id == t.positions.c.event)
        query = sa.select(t.events.c.stream, t.events.c.revision).select_from(joined)
        found = list(connection.execute(query.order_by(t.positions.c.position)))
    streams: dict[str, list[int]] = {}
    for stream, revision in found:
        streams.setdefault(stream, []).append(revision)
    assert all(revisions == sorted(revisions) for revisions in streams.values())


@pytest.mark.req("B1")
def test_a_leader_that_was_overtaken_places_nothing(world: World) -> None:
    first, _ = world.ledgers
    store = world.stores[0]
    world.sequence()
    first.submit(version_accepted(first, "http://x/f")).result(10)
    with store.writing.begin() as connection:
        old = sequencer.lead(connection, "test")
        assert old is not None
        assert sequencer.lead(connection, "other") is None
        sequencer.resign(connection, old)
    with store.writing.begin() as connection:
        new = sequencer.lead(connection, "other")
        assert new is not None
        assert new.number == old.number + 1
    with store.writing.begin() as connection:
        assert sequencer.sequence(connection, old, limit=10) is None
        assert sequencer.sequence(connection, new, limit=10) == 1


@pytest.mark.req("B1")
@pytest.mark.req("B4")
@pytest.mark.timeout(4000)
def test_no_event_is_skipped_and_streams_keep_their_order_under_adverse_timing(
    world: World, request: pytest.FixtureRequest
) -> None:
    """Two Ledgers share few streams, others hold, roll back and delay, while positions are given."""
    # The Ledger's own pace allows for some ten thousand events; ``test_sequencer_storm`` has more.
    rounds = 60 if not request.config.getoption("--all-pairs", default=False) else 600
    ended = threading.Event()
    placed = [0]

    def place() -> None:
        while not ended.is_set():
            placed[0] += world.sequence()

    def disturb() -> None:
        with world.connect() as connection:
            while not ended.wait(0.005):
                connection.execute("SELECT pg_current_xact_id()")
                ended.wait(0.01)
                connection.rollback()

    threads = [threading.Thread(target=target) for target in (place, disturb, disturb)]
    for thread in threads:
        thread.start()
    try:
        for number in range(1, rounds + 1):
            futures = [
                ledger.submit(
                    version_accepted(
                        ledger,
                        "http://x/f",
                        number=number * 2 + n,
                        file_id=f"F-{number // 64}-{file}",
                    )
                )
                for n, ledger in enumerate(world.ledgers)
                for file in range(8)
            ]
            for future in futures:
                future.result(30)
    finally:
        ended.set()
        for thread in threads:
            thread.join()
    world.sequence()
    assert world.count(t.positions) == world.count(t.events)
    assert world.count(t.events) >= rounds * 16
    assert verify_chain(world.stores[0]).faults == []

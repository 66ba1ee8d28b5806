"""Claims, leases and due work on both backends: who may do what, and who comes too late."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any, TypeVar

import pytest
import sqlalchemy as sa

from app.clock import SystemClock, SystemDice
from app.ledger import Ledger
from app.ledger.book import Book
from app.ledger.requests import Answer, Control, Finish, Recorded
from app.store import leases, queue
from app.store import tables as t
from app.store.engine import Store
from app.store.leases import Hold, Lease
from app.store.queue import Excluded, Slots
from domain.commands import Cause, Destination, FinishJob, Lost, Refusal, Stored
from domain.events import Artifact
from domain.installation import RecipeDefined
from domain.outcomes import Again, Done
from domain.recipes import Recipe
from domain.schedule import RetryPolicy
from tests import claiming
from tests.runtimes import version_accepted

RECIPE = Recipe("all", ("contracts",), notify=("erp", "crm"), versions="all")
RETRY = RetryPolicy()
SHA = "ab" * 32
T = TypeVar("T")


@dataclass(frozen=True)
class Bench:
    """A Ledger over an empty store, and a clock that both can be asked."""

    store: Store
    ledger: Ledger

    def do(self, operation: Callable[[sa.Connection, int], T]) -> T:
        return self.ledger.operate(operation)

    def accept(self, file_id: str = "F-1", **fields: Any) -> str:
        """A version becomes known; gives the id of its download."""
        accept = version_accepted(self.ledger, "http://x/f", file_id=file_id, **fields)
        self.ledger.submit(accept).result(10)
        with self.store.read() as connection:
            query = sa.select(t.jobs.c.id).where(t.jobs.c.stream == accept.stream)
            return str(
                connection.execute(query.order_by(t.jobs.c.ordered_ms.desc())).scalars().first()
            )

    def claim(self, job: str, owner: str = "w1", lease_ms: int = 60_000) -> Lease | None:
        return self.do(
            lambda connection, now_ms: claiming.claim_job(
                connection, job, Hold(owner, 1, now_ms, lease_ms)
            )
        )

    def renew(self, lease: Lease, *, done: int = 0, total: int | None = None) -> bool:
        return self.do(
            lambda connection, now_ms: leases.renew(
                connection, lease, Hold("w1", 1, now_ms, 60_000), done, total
            )
        )

    def is_next(self, message: str) -> bool:
        return self.do(lambda connection, _: queue.is_next(connection, message, "continue"))

    def finish(self, lease: Lease, outcome: Any) -> Answer:
        command = FinishJob(
            stream=lease.stream,
            cause=Cause("attempt"),
            job=lease.id,
            epoch=lease.epoch,
            outcome=outcome,
            retry=RETRY,
        )
        finish = Finish(command=command, incarnation=lease.incarnation)
        return self.ledger.submit(finish).result(10)[0]

    def download(self, file_id: str = "F-1", **fields: Any) -> list[str]:
        """A version whose bytes are there; gives the ids of the messages that tell of it."""
        lease = self.claim(self.accept(file_id, **fields))
        assert lease is not None
        artifact = Artifact(f"art_{lease.id}", "original", SHA, 3, "text/plain")
        answer = self.finish(lease, Done(Stored((artifact,))))
        assert isinstance(answer, Recorded)
        return [m.id for e in answer.events for m in getattr(e, "messages", ())]

    def row(self, table: sa.Table, work: str) -> Any:
        with self.store.read() as connection:
            return connection.execute(sa.select(table).where(table.c.id == work)).first()


@pytest.fixture
def bench(store: Store) -> Iterator[Bench]:
    places = {name: Destination(name) for name in ("erp", "crm")}
    book = Book(b"k" * 32, 1, (RECIPE,), places, recipes={RECIPE.digest: RECIPE})
    ledger = Ledger(store, book, SystemClock(), SystemDice())
    ledger.start()
    form = RECIPE.canonical.decode()
    defined = RecipeDefined(at_ms=0, digest=RECIPE.digest, form=form)
    ledger.submit(Control(defined, Cause("system"))).result(10)
    yield Bench(store, ledger)
    ledger.close()


@pytest.mark.req("D1")
def test_of_many_who_claim_at_once_one_gets_it(bench: Bench) -> None:
    job = bench.accept()
    found: list[Lease | None] = []
    threads = [
        threading.Thread(target=lambda n=n: found.append(bench.claim(job, f"w{n}")))
        for n in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 8
    assert len([lease for lease in found if lease]) == 1


@pytest.mark.req("D1")
def test_a_claim_of_what_is_not_due_or_not_there_gets_nothing(bench: Bench) -> None:
    job = bench.accept()
    assert bench.claim("job_none") is None
    lease = bench.claim(job)
    assert lease is not None
    bench.finish(lease, Again("later", counted=False, wait_s=60))
    assert bench.claim(job) is None


@pytest.mark.req("D1")
def test_an_older_epoch_changes_nothing(bench: Bench) -> None:
    job = bench.accept()
    first = bench.claim(job)
    assert first is not None
    bench.finish(first, Again("later", counted=False, wait_s=0))
    second = bench.claim(job, "w2")
    assert second is not None
    assert second.epoch == first.epoch + 1
    before = bench.row(t.jobs, job)
    for stale in (first, replace(second, incarnation=2)):
        answer = bench.finish(stale, Done(Stored((Artifact("a", "original", SHA, 1, "x/y"),))))
        assert isinstance(answer, Refusal)
        assert answer.code == "stale"
        assert not bench.renew(stale)
    assert bench.row(t.jobs, job) == before
    assert bench.row(t.leases, job).owner == "w2"


@pytest.mark.req("D1")
def test_a_lease_lapses_and_a_renewed_one_does_not(bench: Bench) -> None:
    gone, kept = bench.accept("F-1"), bench.accept("F-2")
    for job in (gone, kept):
        assert bench.claim(job, lease_ms=-1)
    lease = bench.row(t.leases, kept)
    assert bench.renew(lease, done=7, total=9)
    assert (bench.row(t.leases, kept).done, bench.row(t.leases, kept).total) == (7, 9)
    lapsed = bench.do(lambda c, now_ms: leases.lapsed(c, now_ms, limit=10))
    assert [each.id for each in lapsed] == [gone]


@pytest.mark.req("D1")
def test_who_reaps_a_lease_that_was_renewed_meanwhile_is_refused(bench: Bench) -> None:
    job = bench.accept()
    lease = bench.claim(job)
    assert lease is not None
    answer = bench.finish(lease, Lost())
    assert isinstance(answer, Refusal)
    assert answer.code == "conflict"
    assert bench.row(t.leases, job) is not None


@pytest.mark.req("D1")
def test_three_losses_are_a_dead_job(bench: Bench) -> None:
    job = bench.accept()
    for losses in (1, 2, 3):
        lease = bench.claim(job, lease_ms=-1)
        assert lease is not None
        assert isinstance(bench.finish(lease, Lost()), Recorded)
        assert bench.row(t.jobs, job).losses == losses
    assert bench.row(t.jobs, job).state == "dead"
    assert bench.row(t.jobs, job).error == "worker died 3 times"
    assert bench.claim(job) is None


def test_a_new_owner_of_the_store_lapses_every_lease(bench: Bench) -> None:
    job = bench.accept()
    assert bench.claim(job)
    bench.do(leases.lapse_all)
    lapsed = bench.do(lambda c, now_ms: leases.lapsed(c, now_ms, limit=10))
    assert [each.id for each in lapsed] == [job]


# -- due work ------------------------------------------------------------------------------------


def jobs_due(bench: Bench, *, free: int = 10, excluded: Excluded | None = None) -> list[str]:
    found = bench.do(
        lambda c, now_ms: queue.due_jobs(
            c, "download", Slots("source:contracts", free), now_ms, excluded or Excluded()
        )
    )
    return [due.id for due in found]


def messages_due(bench: Bench, slots: Slots, paused: frozenset[str] = frozenset()) -> list[str]:
    found = bench.do(lambda c, now_ms: queue.due_messages(c, slots, now_ms, paused))
    return [due.id for due in found]


def test_due_jobs_are_read_oldest_first_and_as_far_as_there_are_slots(bench: Bench) -> None:
    jobs = [bench.accept(f"F-{n}") for n in range(4)]
    due_ms = [bench.row(t.jobs, job).due_ms for job in jobs_due(bench)]
    assert due_ms == sorted(due_ms)
    assert len(jobs_due(bench, free=2)) == 2
    assert sorted(jobs_due(bench)) == sorted(jobs)
    bench.claim(jobs[0])
    assert sorted(jobs_due(bench)) == sorted(jobs[1:])


@pytest.mark.req("D1", "D6")
def test_of_jobs_that_lost_a_worker_one_at_a_time_is_due(bench: Bench) -> None:
    taken = [bench.claim(bench.accept(f"F-{n}")) for n in range(3)]
    bench.do(leases.lapse_all)
    for lease in taken:
        assert lease
        bench.finish(lease, Lost())
    untouched = bench.accept("F-9")
    (suspect,) = set(jobs_due(bench)) - {untouched}
    again = bench.claim(suspect)
    assert again
    assert jobs_due(bench) == [untouched]
    bench.finish(again, Again("later", wait_s=60.0))
    (other,) = set(jobs_due(bench)) - {untouched}
    assert other != suspect


@pytest.mark.req("D1", "D6")
def test_a_job_with_one_chance_left_comes_last_and_only_to_a_calm_worker(bench: Bench) -> None:
    def lose(job: str) -> None:
        lease = bench.claim(job)
        assert lease
        bench.do(leases.lapse_all)
        bench.finish(lease, Lost())

    last, first = bench.accept("F-1"), bench.accept("F-2")
    lose(last)
    lose(last)
    assert jobs_due(bench, excluded=Excluded(is_calm=False)) == [first]
    lose(first)
    assert jobs_due(bench) == [first]


@pytest.mark.req("F2")
def test_excluded_recipes_keep_their_work_from_being_due(bench: Bench) -> None:
    bench.accept()
    assert jobs_due(bench, excluded=Excluded(recipes=frozenset({RECIPE.digest}))) == []
    assert len(jobs_due(bench)) == 1


@pytest.mark.req("E10")
def test_due_messages_are_read_for_one_destination_alone(bench: Bench) -> None:
    made = [bench.download(f"F-{n}") for n in range(3)]
    erp = messages_due(bench, Slots("destination:erp", 10))
    crm = messages_due(bench, Slots("destination:crm", 10))
    assert sorted(erp + crm) == sorted(m for pair in made for m in pair)
    assert len(erp) == len(crm) == 3
    assert len(messages_due(bench, Slots("destination:erp", 2))) == 2
    assert messages_due(bench, Slots("destination:erp", 9), frozenset({"contracts"})) == []


@pytest.mark.req("E7")
def test_under_order_by_file_only_the_lowest_sequence_is_due(bench: Bench) -> None:
    first = bench.download("F-1", number=1)
    second = bench.download("F-1", number=2)
    other = bench.download("F-2")
    free = messages_due(bench, Slots("destination:erp", 10))
    assert len(free) == 3
    due = messages_due(bench, Slots("destination:erp", 10, "continue"))
    assert set(due) <= set(first + other)
    assert len(due) == 2
    assert not any(bench.is_next(message) for message in second)


def test_a_wait_asked_of_everyone_is_never_shortened(bench: Bench) -> None:
    bench.do(lambda c, now_ms: queue.ask_to_wait(c, "destination:erp", now_ms + 9_000, "429"))
    bench.do(lambda c, now_ms: queue.ask_to_wait(c, "destination:erp", now_ms + 1_000, "429"))
    seen = bench.do(queue.picture)
    now_ms = int(datetime.now(UTC).timestamp() * 1000)
    assert seen.waits["destination:erp"] > now_ms + 5_000
    only = bench.do(lambda c, now_ms: queue.picture_of(c, "destination:erp", now_ms)())
    assert only.waits == seen.waits
    assert only.running == {"destination:erp": 0}


def test_the_next_due_time_looks_past_what_is_due_already(bench: Bench) -> None:
    bench.accept("F-1")
    assert bench.do(lambda c, now_ms: queue.next_due_ms(c, ["source:contracts"], now_ms)) is None
    lease = bench.claim(bench.accept("F-2"))
    assert lease is not None
    bench.finish(lease, Again("later", counted=False, wait_s=30))
    scopes = ["source:contracts", "destination:erp"]
    found = bench.do(lambda c, now_ms: (queue.next_due_ms(c, scopes, now_ms), now_ms))
    assert 0 < (found[0] or 0) - found[1] <= 30_000


def test_what_is_pending_is_counted_by_part(bench: Bench) -> None:
    bench.accept("F-1")
    bench.download("F-2")
    found = bench.do(lambda c, _: queue.pending(c))
    assert found == {
        ("sources", "contracts"): 3,
        ("recipes", RECIPE.digest): 1,
        ("destinations", "erp"): 1,
        ("destinations", "crm"): 1,
    }

"""An outbox with many messages in it, brought about in bulk by the commands a worker gives."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from typing import Any

import sqlalchemy as sa

from app.clock import Clock
from app.compose import Base, Refused, compose_run
from app.compose.preparing import record_start
from app.config import Config
from app.ledger import Ledger
from app.ledger.requests import Accepted, Answer, Finish, Recorded
from app.store import tables as t
from app.store.leases import Hold, Lease
from domain.commands import Cause, FinishJob, Stored
from domain.events import Artifact
from domain.ids import derive
from domain.outcomes import Done
from domain.schedule import RetryPolicy
from tests import claiming
from tests import runtimes as r

_AT_ONCE = 500
DIGEST = "ab" * 32


@contextmanager
def idle(config: Config, *, clock: Clock | None = None) -> Iterator[Base]:
    """A store and its Ledger, and nobody who works."""
    process = compose_run(config, clock=clock, has_web=False)
    assert not isinstance(process, Refused), process
    base = process.base
    base.ledger.start()
    record_start(base.config, base.store, base.ledger, base.clock)
    try:
        yield base
    finally:
        base.ledger.close()
        base.scratch.close()
        base.store.close()


def pile_up(ledger: Ledger, file_ids: Sequence[str], *, number: int = 1) -> None:
    """Let so many files become known and be downloaded: the messages about them wait."""
    rest = iter(file_ids)
    while some := list(itertools.islice(rest, _AT_ONCE)):
        accepts = [
            r.version_accepted(ledger, "http://x.invalid/", file_id=f, number=number) for f in some
        ]
        for answer in _answers([ledger.submit(accept) for accept in accepts]):
            assert isinstance(answer, Accepted), answer
        claims = ledger.operate(lambda c, now_ms: _claimed(c, now_ms, ledger))
        ends = [ledger.submit(_downloaded(ledger, lease)) for lease in claims]
        for answer in _answers(ends):
            assert isinstance(answer, Recorded), answer


def _answers(futures: Sequence[Future[tuple[Answer, ...]]]) -> Iterator[Answer]:
    for future in futures:
        yield from future.result(60)


def _ready(connection: Any) -> list[str]:
    query = sa.select(t.jobs.c.id).where(t.jobs.c.state == "ready")
    return list(connection.execute(query).scalars())


def _claimed(connection: Any, now_ms: int, ledger: Ledger) -> list[Lease]:
    hold = Hold("test", ledger.book.incarnation, now_ms, 60_000)
    found = [claiming.claim_job(connection, job, hold) for job in _ready(connection)]
    return [lease for lease in found if lease is not None]


def _downloaded(ledger: Ledger, lease: Lease) -> Finish:
    artifact = derive(ledger.book.key, "art", lease.stream, lease.id, "original")
    made = Artifact(artifact, "original", DIGEST, 3, "application/pdf")
    command = FinishJob(
        stream=lease.stream,
        cause=Cause("attempt"),
        job=lease.id,
        epoch=lease.epoch,
        outcome=Done(Stored((made,))),
        retry=RetryPolicy(),
    )
    return Finish(command=command, incarnation=lease.incarnation, outcome="done")

"""Work done by hand on an installation: claimed and finished as a worker would, without one."""

from __future__ import annotations

import hashlib
import itertools
from pathlib import Path

from app.ledger.requests import Finish, Order
from app.store import attempts
from app.store import tables as t
from app.store.leases import Hold, Lease
from domain.commands import Accepted, AnyFileCommand, Cause, FinishJob, FinishMessage, Stored
from domain.events import Artifact
from domain.ids import derive
from domain.outcomes import Dead, Done, Unclear
from domain.schedule import RetryPolicy
from tests import claiming
from tests.installations import Installation, found

_NUMBERS = itertools.count(10**12)
_SYSTEM = Cause("attempt")


def claimed(running: Installation, work: str, *, is_job: bool) -> Lease:
    """A lease on an open piece of work."""
    claim = claiming.claim_job if is_job else claiming.claim_message

    def begin(connection: object, now_ms: int) -> Lease:
        hold = Hold("test", running.ledger.book.incarnation, now_ms, 60_000)
        lease = claim(connection, work, hold)  # type: ignore[arg-type]
        assert lease is not None
        attempts.begin(connection, next(_NUMBERS), lease)  # type: ignore[arg-type]
        return lease

    return running.ledger.operate(begin)


def stored(running: Installation, stream: str, name: str, content: bytes) -> Artifact:
    """Bytes in the store, as an artifact."""
    digest = hashlib.sha256(content).hexdigest()
    path = Path(running.config.path.parent) / "content"
    path.write_bytes(content)
    running.blobs.put_file(path, digest)
    artifact = derive(running.ledger.book.key, "art", stream, digest, name)
    kind = "application/pdf" if name == "original" else "text/plain"
    return Artifact(artifact, name, digest, len(content), kind)


def finish_job(running: Installation, job: str, outcome: Done[Stored] | Dead) -> None:
    lease = claimed(running, job, is_job=True)
    command = FinishJob(
        stream=lease.stream,
        cause=_SYSTEM,
        job=job,
        epoch=lease.epoch,
        outcome=outcome,
        retry=RetryPolicy(),
    )
    word, error = ("dead", outcome.reason) if isinstance(outcome, Dead) else ("done", "")
    finish = Finish(command=command, incarnation=lease.incarnation, outcome=word, error=error)
    running.ledger.submit(finish).result()


def finish_message(
    running: Installation, message: str, outcome: Done[Accepted] | Dead | Unclear
) -> None:
    lease = claimed(running, message, is_job=False)
    command = FinishMessage(
        stream=lease.stream,
        cause=_SYSTEM,
        message=message,
        epoch=lease.epoch,
        outcome=outcome,
        retry=RetryPolicy(),
        reached=True,
    )
    word = type(outcome).__name__.lower()
    exchange = b'{"url":"https://u:p@erp.example/x?key=geheim","status":503,"duration_ms":7}'
    finish = Finish(
        command=command,
        incarnation=lease.incarnation,
        outcome=word,
        error=getattr(outcome, "reason", ""),
        exchange=exchange,
    )
    running.ledger.submit(finish).result()


def process(running: Installation, content: bytes = b"hello") -> str:
    """Do all open jobs of all files; gives the id of the file that was changed last."""
    while jobs := [r for r in found(running, t.jobs) if r.state in {"ready", "waiting"}]:
        for row in jobs:
            name = "original" if row.kind == "download" else row.name
            artifact = stored(running, row.stream, name, content)
            finish_job(running, row.id, Done(Stored((artifact,))))
    return str(max(found(running, t.files), key=lambda row: row.changed_ms).stream)


def deliver(running: Installation, reference: str = "4711") -> None:
    """Have all open messages taken."""
    for row in found(running, t.messages, state="pending"):
        finish_message(running, row.id, Done(Accepted(reference)))


def ordered(running: Installation, command: AnyFileCommand) -> None:
    running.ledger.submit(Order(command)).result()

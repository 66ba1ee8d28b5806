"""The rows of a batch, table by table, each in one statement."""

from __future__ import annotations

from collections.abc import Sequence

import sqlalchemy as sa

from app.ledger.gathered import Gathered
from app.store import condemned, deliveries, erasure, event_log, leases, rows
from app.store import tables as t

_PAYLOADS = t.payloads.insert()
_BODIES = t.bodies.insert()
_VERDICT = (
    t.receipts.update()
    .where(t.receipts.c.event == sa.bindparam("of_event"))
    .values(verdict=sa.bindparam("to_verdict"))
)
_CLOSE = (
    t.attempts.update()
    .where(t.attempts.c.work == sa.bindparam("of_work"))
    .where(t.attempts.c.epoch == sa.bindparam("of_epoch"))
    .values(
        ended_ms=sa.bindparam("at"),
        outcome=sa.bindparam("how"),
        error=sa.bindparam("why"),
        exchange=sa.bindparam("what"),
    )
)


def write(connection: sa.Connection, gathered: Gathered, numbers: Sequence[int]) -> None:
    """Write all that was gathered but the projections."""
    event_log.append(connection, list(zip(numbers, gathered.stored, strict=True)))
    rows.write(
        connection,
        _PAYLOADS,
        [
            {"id": number, "received_ms": at_ms, "body": body}
            for number, body, at_ms in gathered.payloads
        ],
    )
    rows.write(
        connection,
        _BODIES,
        [
            {"message": body.message, "made_ms": at_ms, "salt": body.salt, "data": body.data}
            for body, at_ms in gathered.bodies
        ],
    )
    deliveries.insert(connection, gathered.deliveries)
    _mark_verdicts(connection, gathered)
    leases.end(connection, gathered.ended)
    _close_attempts(connection, gathered)
    for stream, revision in gathered.erased.items():
        erasure.erase(connection, stream, before_revision=revision)
    erasure.blank(connection, gathered.expired)
    condemned.mark(connection, gathered.condemned, since_ms=gathered.now_ms, due_ms=gathered.now_ms)


def _mark_verdicts(connection: sa.Connection, gathered: Gathered) -> None:
    verdicts = [{"of_event": e, "to_verdict": v} for e, v in gathered.verdicts.items()]
    rows.write(connection, _VERDICT, verdicts)


def _close_attempts(connection: sa.Connection, gathered: Gathered) -> None:
    closed = [
        {
            "of_work": lease.id,
            "of_epoch": lease.epoch,
            "at": gathered.now_ms,
            "how": finish.outcome,
            "why": finish.error,
            "what": finish.exchange,
        }
        for lease, finish in gathered.closed
    ]
    rows.write(connection, _CLOSE, closed)

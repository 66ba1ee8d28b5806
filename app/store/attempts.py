"""The history of tries: a row is opened with the claim and closed with its end."""

from __future__ import annotations

import sqlalchemy as sa

from app.store import rows
from app.store import tables as t
from app.store.leases import Lease

_BEGIN = t.attempts.insert()


def begin(connection: sa.Connection, number: int, lease: Lease) -> None:
    """Open the record of this claim."""
    row = {
        "id": number,
        "work": lease.id,
        "stream": lease.stream,
        "number": lease.attempt,
        "epoch": lease.epoch,
        "owner": lease.owner,
        "started_ms": lease.started_ms,
        "outcome": "",
        "error": "",
        "scope": lease.scope,
    }
    rows.write(connection, _BEGIN, [row])

"""Claims as a worker makes them, without a gate: work that is open and due is taken."""

from __future__ import annotations

import sqlalchemy as sa

from app.store import leases
from app.store.leases import Hold, Lease


def claim_job(connection: sa.Connection, job: str, hold: Hold) -> Lease | None:
    """Take an open, due job that nobody has; ``None`` if there is no such job now."""
    found = leases.open_job(connection, job, hold.now_ms)
    return None if found is None else leases.take(connection, found, hold)()


def claim_message(connection: sa.Connection, message: str, hold: Hold) -> Lease | None:
    """Take an open, due message that nobody has; ``None`` if there is no such message now."""
    found = leases.open_message(connection, message, hold.now_ms)
    return None if found is None else leases.take(connection, found, hold)()

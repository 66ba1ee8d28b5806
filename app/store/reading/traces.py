"""The trace that a piece of work belongs to: that of the event that ordered it."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa

from app.store import tables as t
from app.store.codec import decode_event
from app.store.leases import Lease

# What may order work, and the facts that stand for it where another process kept no spans.
_ORDERING = (
    "VersionReported",
    "FileDeleted",
    "FileRestored",
    "FileRenamed",
    "RunStarted",
    "StepsOrdered",
    "VersionCompleted",
    "VersionFailed",
    "FileTold",
)
_LOOKED_AT = 50


def context_of(connection: sa.Connection, lease: Lease) -> str:
    """The trace context of what ordered this work; else of what the file was last told; or ""."""
    rows = connection.execute(_newest(), {"stream": lease.stream}).all()
    bodies: list[Any] = [row.body for row in rows]
    work = lease.id.encode()
    contexts = (
        decode_event(body, None).cause.trace
        for body in [*(b for b in bodies if work in b), *bodies]
    )
    return next((context for context in contexts if context), "")


def _newest() -> sa.Select[Any]:
    return (
        sa.select(t.events.c.body)
        .where(t.events.c.stream == sa.bindparam("stream"), t.events.c.type.in_(_ORDERING))
        .order_by(t.events.c.revision.desc())
        .limit(_LOOKED_AT)
    )

"""The exact bytes of messages."""

from __future__ import annotations

import sqlalchemy as sa

from app.store import tables as t


def load(connection: sa.Connection, message: str) -> bytes | None:
    """The message's bytes; ``None`` once they were erased."""
    query = sa.select(t.bodies.c.data).where(t.bodies.c.message == message)
    return connection.execute(query).scalar()

"""The exact bytes of messages."""

from __future__ import annotations

import sqlalchemy as sa

from app.store import rows
from app.store import tables as t

_LOAD = sa.select(t.bodies.c.data).where(t.bodies.c.message == sa.bindparam("wanted"))


def ask(connection: sa.Connection, message: str) -> rows.Asked[bytes | None]:
    """The message's bytes; ``None`` once they were erased."""
    found = rows.ask(connection, _LOAD, {"wanted": message})
    return lambda: next((data for (data,) in found()), None)

"""Take away what can be erased of a file; receipts, order and chain stay."""

from __future__ import annotations

from collections.abc import Sequence

import sqlalchemy as sa

from app.store import tables as t

# The message that tells a receiver of the erasure must still be sent, so its bytes stay.
_TELLS_OF_ERASURE = "file.erased"


def erase(connection: sa.Connection, stream: str, *, before_revision: int) -> None:
    """Remove private parts, bodies and answers of the file, up to the event of its erasure."""
    events = sa.select(t.events.c.id).where(
        t.events.c.stream == stream, t.events.c.revision < before_revision
    )
    connection.execute(t.private_parts.delete().where(t.private_parts.c.event.in_(events)))
    payloads = sa.select(t.receipts.c.payload).where(t.receipts.c.stream == stream)
    connection.execute(t.payloads.update().where(t.payloads.c.id.in_(payloads)).values(body=None))
    messages = sa.select(t.messages.c.id).where(
        t.messages.c.stream == stream, t.messages.c.type != _TELLS_OF_ERASURE
    )
    connection.execute(
        t.bodies.update().where(t.bodies.c.message.in_(messages)).values(salt=None, data=None)
    )
    _erase_history(connection, stream)


def blank(connection: sa.Connection, messages: Sequence[str]) -> None:
    """Remove the bytes of these messages; that they were sent stays known."""
    if messages:
        gone = t.bodies.c.message.in_(messages)
        connection.execute(t.bodies.update().where(gone).values(salt=None, data=None))


def _erase_history(connection: sa.Connection, stream: str) -> None:
    mine = sa.select(t.receipts.c.event).where(t.receipts.c.stream == stream)
    payloads = sa.select(t.deliveries.c.payload).where(t.deliveries.c.event.in_(mine))
    connection.execute(t.payloads.update().where(t.payloads.c.id.in_(payloads)).values(body=None))
    connection.execute(
        t.deliveries.update()
        .where(t.deliveries.c.event.in_(mine))
        .values(event_id=None, delivery_id=None)
    )
    connection.execute(
        t.attempts.update().where(t.attempts.c.stream == stream).values(exchange=None, error="")
    )
    connection.execute(
        t.receipts.update()
        .where(t.receipts.c.stream == stream)
        .values(event_id=None, delivery_id=None)
    )

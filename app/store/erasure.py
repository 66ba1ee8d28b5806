"""Take away what can be erased of a file; receipts, order and chain stay."""

from __future__ import annotations

from collections.abc import Sequence

import sqlalchemy as sa

from app.store import rows
from app.store import tables as t

_OF_STREAM = sa.bindparam("of_stream", type_=sa.Text)
_NOTHING = sa.null()
_NO_TEXT: sa.ColumnElement[str] = sa.literal_column("''")
# The message that tells a receiver of the erasure must still be sent, so its bytes stay.
_TOLD = sa.select(t.messages.c.id).where(
    t.messages.c.stream == _OF_STREAM, t.messages.c.type != sa.literal_column("'file.erased'")
)
_FIRST = sa.select(t.receipts.c.payload).where(t.receipts.c.stream == _OF_STREAM)
_MINE = sa.select(t.receipts.c.event).where(t.receipts.c.stream == _OF_STREAM)
_OTHERS = sa.select(t.deliveries.c.payload).where(t.deliveries.c.event.in_(_MINE))
_FORGET_PARTS = t.private_parts.delete().where(
    t.private_parts.c.event.in_(
        sa.select(t.events.c.id).where(
            t.events.c.stream == _OF_STREAM, t.events.c.revision < sa.bindparam("before")
        )
    )
)
# What was received, what was sent, and how the tries went; receipts last, for they name the rest.
_FORGET = (
    t.payloads.update().where(t.payloads.c.id.in_(_FIRST)).values(body=_NOTHING),
    t.bodies.update().where(t.bodies.c.message.in_(_TOLD)).values(salt=_NOTHING, data=_NOTHING),
    t.payloads.update().where(t.payloads.c.id.in_(_OTHERS)).values(body=_NOTHING),
    t.deliveries.update()
    .where(t.deliveries.c.event.in_(_MINE))
    .values(event_id=_NOTHING, delivery_id=_NOTHING),
    t.attempts.update()
    .where(t.attempts.c.stream == _OF_STREAM)
    .values(exchange=_NOTHING, error=_NO_TEXT),
    t.receipts.update()
    .where(t.receipts.c.stream == _OF_STREAM)
    .values(event_id=_NOTHING, delivery_id=_NOTHING),
)
_BLANK = (
    t.bodies.update()
    .where(t.bodies.c.message == sa.bindparam("of_message"))
    .values(salt=_NOTHING, data=_NOTHING)
)


def erase(connection: sa.Connection, stream: str, *, before_revision: int) -> None:
    """Remove private parts, bodies and answers of the file, up to the event of its erasure."""
    rows.write(connection, _FORGET_PARTS, [{"of_stream": stream, "before": before_revision}])
    for statement in _FORGET:
        rows.write(connection, statement, [{"of_stream": stream}])


def blank(connection: sa.Connection, messages: Sequence[str]) -> None:
    """Remove the bytes of these messages; that they were sent stays known."""
    rows.write(connection, _BLANK, [{"of_message": message} for message in sorted(messages)])

"""Append to the log, and read it: by stream for decisions and replay, by position for followers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import sqlalchemy as sa

from app.store import rows
from app.store import tables as t
from app.store.codec import Recorded, Stored, decode_event
from domain import chain


@dataclass(frozen=True, slots=True)
class Head:
    """The end of the log: the last position, and the hash that fixes all before it."""

    position: int
    hash: bytes


@dataclass(frozen=True, slots=True)
class Positioned:
    """An event with its place in the log."""

    position: int
    recorded: Recorded


_APPEND = t.events.insert()
_APPEND_PARTS = t.private_parts.insert()
_PLACE = t.positions.insert()
_HEAD = (
    sa.select(t.positions.c.position, t.positions.c.hash)
    .order_by(t.positions.c.position.desc())
    .limit(sa.literal_column("1"))
)


def head(connection: sa.Connection) -> Head:
    """The end of the log as this connection sees it."""
    return ask_head(connection)()


def ask_head(connection: sa.Connection) -> rows.Asked[Head]:
    """``head`` in two halves."""
    answer = rows.ask(connection, _HEAD)

    def found() -> Head:
        last = answer()
        return Head(*last[0]) if last else Head(0, chain.GENESIS)

    return found


def append(connection: sa.Connection, numbered: Sequence[tuple[int, Stored]]) -> None:
    """Append events under these ids, in this order, with their private parts."""
    rows.write(
        connection,
        _APPEND,
        [
            {
                "id": number,
                "stream": stored.stream,
                "revision": stored.revision,
                "type": stored.type,
                "body": stored.body,
            }
            for number, stored in numbered
        ],
    )
    private = [
        {"event": number, "salt": stored.salt, "parts": stored.parts}
        for number, stored in numbered
        if stored.parts
    ]
    rows.write(connection, _APPEND_PARTS, private)


def place(connection: sa.Connection, last: Head, bodies: Sequence[tuple[int, bytes]]) -> Head:
    """Give positions without gaps and chain the hashes, in this order; gives the new head."""
    placed = []
    position, digest = last.position, last.hash
    for number, body in bodies:
        position += 1
        digest = chain.link(digest, body)
        placed.append({"position": position, "event": number, "hash": digest})
    rows.write(connection, _PLACE, placed)
    return Head(position, digest)


def read_stream(connection: sa.Connection, stream: str) -> list[Recorded]:
    """The events of one stream, by revision."""
    query = (
        sa.select(t.events.c.body, t.private_parts.c.parts)
        .select_from(t.events.outerjoin(t.private_parts, _own_parts()))
        .where(t.events.c.stream == stream)
        .order_by(t.events.c.revision)
    )
    return [decode_event(body, parts) for body, parts in connection.execute(query)]


def read_after(
    connection: sa.Connection, position: int, *, limit: int, stream: str = "", kind: str = ""
) -> list[Positioned]:
    """The events after a position, in order; of one stream or of one type if wanted."""
    query = (
        sa.select(t.positions.c.position, t.events.c.body, t.private_parts.c.parts)
        .select_from(
            t.positions.join(t.events, t.events.c.id == t.positions.c.event).outerjoin(
                t.private_parts, _own_parts()
            )
        )
        .where(t.positions.c.position > position)
        .order_by(t.positions.c.position)
        .limit(limit)
    )
    if stream:
        query = query.where(t.events.c.stream == stream)
    if kind:
        query = query.where(t.events.c.type == kind)
    found = connection.execute(query)
    return [Positioned(place, decode_event(body, parts)) for place, body, parts in found]


def raw_after(
    connection: sa.Connection, position: int, *, limit: int
) -> Iterator[tuple[int, bytes, bytes | None, int]]:
    """Position, hash, body and event id after a position: what the chain is verified over.

    A position whose event is missing comes with ``None`` for its body.
    """
    query = (
        sa.select(t.positions.c.position, t.positions.c.hash, t.events.c.body, t.positions.c.event)
        .select_from(t.positions.outerjoin(t.events, t.events.c.id == t.positions.c.event))
        .where(t.positions.c.position > position)
        .order_by(t.positions.c.position)
        .limit(limit)
    )
    for row in connection.execute(query):
        yield row.position, row.hash, row.body, row.event


def last_revision(connection: sa.Connection, stream: str) -> int:
    """The number of events in a stream."""
    query = sa.select(sa.func.max(t.events.c.revision)).where(t.events.c.stream == stream)
    return int(connection.execute(query).scalar() or 0)


def _own_parts() -> sa.ColumnElement[bool]:
    return t.private_parts.c.event == t.events.c.id

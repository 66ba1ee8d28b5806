"""Erasures as the log tells them."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa

from app.store import tables as t
from app.store.codec import Recorded, decode_event


@dataclass(frozen=True, slots=True)
class Erasure:
    """The last erasure of a file; ``position`` and ``hash`` are 0 and "" until it has a place."""

    stream: str
    recorded: Recorded
    position: int
    hash: str


def note(stream: str, at_ms: int) -> tuple[str, bytes]:
    """Name and bytes of the note about an erasure, for whoever restores an older backup."""
    data = {"kind": "laufzettel.erased.1", "file": stream, "at_ms": at_ms}
    return stream, json.dumps(data, sort_keys=True).encode()


def read_note(data: bytes) -> tuple[str, int] | None:
    """The file of a note and when it was erased; ``None`` for what is no such note."""
    try:
        told = json.loads(data)
        return str(told["file"]), int(told["at_ms"])
    except (ValueError, KeyError, TypeError):
        return None


def last(connection: sa.Connection, stream: str) -> Erasure | None:
    """The last erasure of this file, if there was one."""
    query = _erasures().where(t.events.c.stream == stream).order_by(t.events.c.revision.desc())
    row = connection.execute(query.limit(1)).first()
    return None if row is None else _erasure(row)


def after(connection: sa.Connection, position: int, *, limit: int) -> list[Erasure]:
    """The next erasures behind a position of the log."""
    query = _erasures().where(t.positions.c.position > position)
    rows = connection.execute(query.order_by(t.positions.c.position).limit(limit))
    return [_erasure(row) for row in rows]


def _erasures() -> sa.Select[Any]:
    events, positions, parts = t.events.c, t.positions.c, t.private_parts.c
    return (
        sa.select(events.stream, events.body, parts.parts, positions.position, positions.hash)
        .select_from(
            t.events.outerjoin(t.positions, positions.event == events.id).outerjoin(
                t.private_parts, parts.event == events.id
            )
        )
        .where(events.type == "FileErased")
    )


def _erasure(row: sa.Row[Any]) -> Erasure:
    digest = row.hash.hex() if row.hash else ""
    return Erasure(row.stream, decode_event(row.body, row.parts), row.position or 0, digest)

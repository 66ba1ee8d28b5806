"""What a verification reads: the log by position, its private parts, the bodies of messages."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import NamedTuple

import sqlalchemy as sa

from app.store import tables as t
from app.store.shared_tables import unsequenced

# A statement takes only so many values.
_MOST_KEYS = 5000


class Link(NamedTuple):
    """A position with its event; what is missing of the event is ``None``.

    On SQLite a column takes values of any type, so what should be bytes may be no bytes.
    """

    position: int
    hash: object
    event: int
    stream: str | None
    revision: int | None
    type: str | None
    body: object


class Sealed(NamedTuple):
    """An event with its private part, if it has one."""

    position: int
    stream: str
    revision: int
    type: str
    body: bytes
    salt: bytes | None
    parts: bytes | None


def links(connection: sa.Connection, after: int, *, limit: int) -> list[Link]:
    """The next positions behind one."""
    events, positions = t.events.c, t.positions.c
    query = (
        sa.select(
            positions.position,
            positions.hash,
            positions.event,
            events.stream,
            events.revision,
            events.type,
            events.body,
        )
        .select_from(t.positions.outerjoin(t.events, events.id == positions.event))
        .where(positions.position > after)
        .order_by(positions.position)
        .limit(limit)
    )
    return [Link(*row) for row in connection.execute(query)]


def sealed(connection: sa.Connection, after: int, *, limit: int) -> list[Sealed]:
    """The next events behind a position, with their private parts."""
    events, parts = t.events.c, t.private_parts.c
    query = (
        sa.select(
            t.positions.c.position,
            events.stream,
            events.revision,
            events.type,
            events.body,
            parts.salt,
            parts.parts,
        )
        .select_from(
            t.positions.join(t.events, events.id == t.positions.c.event).outerjoin(
                t.private_parts, parts.event == events.id
            )
        )
        .where(t.positions.c.position > after)
        .order_by(t.positions.c.position)
        .limit(limit)
    )
    return [Sealed(*row) for row in connection.execute(query)]


def revisions_before(
    connection: sa.Connection, streams: Collection[str], position: int
) -> dict[str, int]:
    """The highest revision of each stream up to a position."""
    query = (
        sa.select(t.events.c.stream, sa.func.max(t.events.c.revision))
        .select_from(t.events.join(t.positions, t.positions.c.event == t.events.c.id))
        .where(t.events.c.stream.in_(streams), t.positions.c.position <= position)
        .group_by(t.events.c.stream)
    )
    return {stream: revision for stream, revision in connection.execute(query)}  # noqa: C416


def erased_at(connection: sa.Connection, streams: Collection[str]) -> dict[str, int]:
    """The revision of each stream's last erasure; streams without one are left out."""
    query = (
        sa.select(t.events.c.stream, sa.func.max(t.events.c.revision))
        .where(t.events.c.stream.in_(streams), t.events.c.type == "FileErased")
        .group_by(t.events.c.stream)
    )
    return {stream: revision for stream, revision in connection.execute(query)}  # noqa: C416


def unplaced(connection: sa.Connection, *, limit: int) -> list[int]:
    """Events without a position, but for those that wait for the sequencer."""
    query = (
        sa.select(t.events.c.id)
        .select_from(t.events.outerjoin(t.positions, t.positions.c.event == t.events.c.id))
        .where(t.positions.c.position.is_(None))
        .order_by(t.events.c.id)
        .limit(limit)
    )
    if connection.dialect.name == "postgresql":
        query = query.where(t.events.c.id.not_in(sa.select(unsequenced.c.event)))
    return list(connection.execute(query).scalars())


def bodies(
    connection: sa.Connection, messages: Sequence[str]
) -> dict[str, tuple[bytes | None, bytes | None]]:
    """Salt and bytes of these messages."""
    found: dict[str, tuple[bytes | None, bytes | None]] = {}
    for start in range(0, len(messages), _MOST_KEYS):
        some = messages[start : start + _MOST_KEYS]
        query = sa.select(t.bodies).where(t.bodies.c.message.in_(some))
        found |= {row.message: (row.salt, row.data) for row in connection.execute(query)}
    return found


class Recorded(NamedTuple):
    """An artifact as it was recorded."""

    sha256: str
    id: str
    size_bytes: int


def artifacts(connection: sa.Connection, after: Recorded, *, limit: int) -> list[Recorded]:
    """The next artifacts behind one, by digest: those of the same bytes stand together."""
    found = t.artifacts.c
    query = (
        sa.select(found.sha256, found.id, found.size_bytes)
        .where(sa.tuple_(found.sha256, found.id) > (after.sha256, after.id))
        .order_by(found.sha256, found.id)
        .limit(limit)
    )
    return [Recorded(*row) for row in connection.execute(query)]


def count_positions(connection: sa.Connection) -> int:
    """The number of events in the chain."""
    return int(connection.execute(sa.select(sa.func.count()).select_from(t.positions)).scalar_one())


def count_artifacts(connection: sa.Connection) -> int:
    """The number of artifacts."""
    return int(connection.execute(sa.select(sa.func.count()).select_from(t.artifacts)).scalar_one())

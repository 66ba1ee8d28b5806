"""What a rebuild reads and writes: the events and the projected rows of a span of streams."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import sqlalchemy as sa

from app.store import projections
from app.store import tables as t
from app.store.projections import Row

Rows = Mapping[sa.Table, Mapping[str, Row]]


@dataclass(frozen=True, slots=True)
class Span:
    """Streams in the database's order: those behind ``after``, up to ``upto`` ("": to the end)."""

    after: str
    upto: str


@dataclass(frozen=True, slots=True)
class Raw:
    """An event as it is stored, not yet judged."""

    stream: str
    revision: int
    type: str
    body: bytes
    parts: bytes | None


def next_span(connection: sa.Connection, after: str, *, streams: int) -> Span:
    """The next streams of the log; the last span has no end, so that no row lies behind it."""
    query = sa.select(t.events.c.stream).distinct().where(t.events.c.stream > after)
    found = connection.execute(query.order_by(t.events.c.stream).limit(streams)).scalars().all()
    return Span(after, found[-1] if len(found) == streams else "")


def read_events(connection: sa.Connection, within: Span | str) -> list[Raw]:
    """The events of a span or of one stream, stream by stream, by revision."""
    query = (
        sa.select(
            t.events.c.stream,
            t.events.c.revision,
            t.events.c.type,
            t.events.c.body,
            t.private_parts.c.parts,
        )
        .select_from(t.events.outerjoin(t.private_parts, t.private_parts.c.event == t.events.c.id))
        .where(_within(t.events, within))
        .order_by(t.events.c.stream, t.events.c.revision)
    )
    return [Raw(*row) for row in connection.execute(query)]


def read_until(connection: sa.Connection, stream: str, position: int) -> list[Raw]:
    """The events of one stream up to a position of the log, by revision."""
    query = (
        sa.select(sa.func.max(t.events.c.revision))
        .select_from(t.events.join(t.positions, t.positions.c.event == t.events.c.id))
        .where(t.events.c.stream == stream, t.positions.c.position <= position)
    )
    last = int(connection.execute(query).scalar() or 0)
    return [raw for raw in read_events(connection, stream) if raw.revision <= last]


def read_rows(connection: sa.Connection, within: Span | str) -> Rows:
    """The projected rows of a span or of one stream, by table and key."""
    return {
        table: _by_key(connection, table, sa.select(table).where(_within(table, within)))
        for table in t.PROJECTED_BY_STREAM
    }


def read_control_rows(connection: sa.Connection) -> Rows:
    """The rows that the installation's own stream makes."""
    return {table: _by_key(connection, table, sa.select(table)) for table in t.PROJECTED_BY_CONTROL}


def rewrite(
    connection: sa.Connection, wanted: Mapping[sa.Table, Iterable[Row]], live: Rows
) -> None:
    """Write the wanted rows that differ from the live ones; remove those that nobody wants."""
    for table, found in wanted.items():
        key = key_of(table)
        there = live[table]
        rows = list(found)
        projections.upsert(connection, table, [r for r in rows if there.get(r[key]) != r])
        extra = sorted(there.keys() - {row[key] for row in rows})
        if extra:
            connection.execute(table.delete().where(table.c[key].in_(extra)))


def count_events(connection: sa.Connection) -> int:
    """How many events there are."""
    return int(connection.execute(sa.select(sa.func.count()).select_from(t.events)).scalar_one())


def key_of(table: sa.Table) -> str:
    """The name of a table's key."""
    return next(iter(table.primary_key.columns)).name


def _by_key(
    connection: sa.Connection, table: sa.Table, query: sa.Select[tuple[object, ...]]
) -> dict[str, Row]:
    key = key_of(table)
    return {row[key]: dict(row) for row in connection.execute(query).mappings()}


def _within(table: sa.Table, within: Span | str) -> sa.ColumnElement[bool]:
    stream = table.c.stream
    if isinstance(within, str):
        return stream == within
    behind = stream > within.after
    return sa.and_(behind, stream <= within.upto) if within.upto else behind


def by_stream(events: Sequence[Raw]) -> dict[str, list[Raw]]:
    """The events of each stream."""
    found: dict[str, list[Raw]] = {}
    for raw in events:
        found.setdefault(raw.stream, []).append(raw)
    return found

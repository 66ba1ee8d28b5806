"""The log as people and receivers follow it: by position, bounded, within what they may see."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa

from app.store import event_log
from app.store import tables as t
from app.store.codec import Recorded, decode_event
from app.store.event_log import Positioned
from app.store.rare import IS_RARE, NAMES, ORDERED

__all__ = ["FeedItem", "LogFilter", "Positioned", "after", "feed", "last_position", "orders"]

_MOST_ORDERS = 5000
_NUMBERS_APART = 10_000
_TELLING = ("VersionCompleted", "VersionFailed", "FileTold")


@dataclass(frozen=True, slots=True, kw_only=True)
class LogFilter:
    """Which events are wanted; ``sources`` is what the one who asks may see, ``None`` for all."""

    stream: str = ""
    type: str = ""
    operator: str = ""
    since_ms: int = 0
    sources: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True)
class FeedItem:
    """One message in a destination's feed, with the position of the event that ordered it."""

    position: int
    message: str
    body: bytes | None


def after(
    connection: sa.Connection, position: int, wanted: LogFilter, *, limit: int
) -> list[Positioned]:
    """The events behind a position, in order."""
    query = _narrowed(_events().where(t.positions.c.position > position), wanted)
    return _read(connection, query.order_by(t.positions.c.position).limit(limit))


def before(
    connection: sa.Connection, position: int, wanted: LogFilter, *, limit: int
) -> list[Positioned]:
    """The events before a position, the last first."""
    query = _narrowed(_events().where(t.positions.c.position < position), wanted)
    return _read(connection, query.order_by(t.positions.c.position.desc()).limit(limit))


def orders(
    connection: sa.Connection, before: int | None, wanted: LogFilter, *, limit: int
) -> list[Positioned]:
    """What operators ordered, the last first."""
    if wanted.stream:
        query = _events().where(t.events.c.stream == wanted.stream, t.events.c.type.in_(ORDERED))
    else:
        query = _events().where(t.events.c.id.in_(_latest_orders(connection, before)))
    if before is not None:
        query = query.where(t.positions.c.position < before)
    if wanted.sources is not None:
        query = query.where(t.events.c.stream.in_(_streams_of(wanted.sources)))
    found: list[Positioned] = []
    for row in connection.execute(query.order_by(t.positions.c.position.desc())):
        item = Positioned(row.position, decode_event(row.body, row.parts))
        if item.recorded.event.at_ms < wanted.since_ms or len(found) == limit:
            break
        if _is_order_of(item.recorded, wanted.operator):
            found.append(item)
    return found


def position_at(connection: sa.Connection, at_ms: int) -> int:
    """The last position that was recorded by a time, to within what clocks of writers differ."""
    low, high = 0, last_position(connection)
    while low < high:
        middle = (low + high + 1) // 2
        query = _events().where(t.positions.c.position >= middle)
        query = query.order_by(t.positions.c.position).limit(1)
        found = _read(connection, query)
        if found and found[0].recorded.event.at_ms > at_ms:
            high = middle - 1
        else:
            low = middle
    return low


def last_position(connection: sa.Connection) -> int:
    """The end of the log."""
    return event_log.head(connection).position


def restored_at(connection: sa.Connection) -> int | None:
    """The position at which the last restore began another history; ``None`` without one."""
    query = (
        sa.select(sa.func.max(t.positions.c.position))
        .select_from(t.positions.join(t.events, t.events.c.id == t.positions.c.event))
        .where(IS_RARE, t.events.c.type == "LogRestored")
    )
    found = connection.execute(query).scalar()
    return None if found is None else int(found)


def feed(
    connection: sa.Connection, destination: str, position: int, *, limit: int
) -> tuple[list[FeedItem], int]:
    """A destination's messages behind a position, in order; and how far the log was read."""
    query = (
        _events()
        .where(t.positions.c.position > position, t.events.c.type.in_(_TELLING))
        .order_by(t.positions.c.position)
        .limit(1000)
    )
    found: list[tuple[int, str]] = []
    read = position
    for item in _read(connection, query):
        if len(found) >= limit:
            break
        read = item.position
        told = getattr(item.recorded.event, "messages", ())
        found += [(item.position, order.id) for order in told if order.destination == destination]
    bodies = _bodies(connection, [message for _, message in found])
    return [FeedItem(at, message, bodies.get(message)) for at, message in found], read


def _latest_orders(connection: sa.Connection, before: int | None) -> sa.Select[Any]:
    """The numbers of the last orders, or of those around a position and before it."""
    ids = sa.select(t.events.c.id).where(IS_RARE, t.events.c.type.in_(ORDERED))
    if before is not None:
        place = sa.select(t.positions.c.event).where(t.positions.c.position < before)
        place = place.order_by(t.positions.c.position.desc()).limit(1)
        last = connection.execute(place).scalar() or 0
        # Numbers rise with positions but for writers beside each other, who differ by less.
        ids = ids.where(t.events.c.id <= last + _NUMBERS_APART)
    return ids.order_by(t.events.c.id.desc()).limit(_MOST_ORDERS)


def _is_order_of(recorded: Recorded, operator: str) -> bool:
    cause = recorded.cause
    return cause.kind == "operator" and (not operator or operator in {cause.operator, cause.id})


def _bodies(connection: sa.Connection, messages: list[str]) -> dict[str, bytes]:
    query = sa.select(t.bodies.c.message, t.bodies.c.data).where(t.bodies.c.message.in_(messages))
    return {row.message: bytes(row.data) for row in connection.execute(query) if row.data}


def _narrowed(query: sa.Select[Any], wanted: LogFilter) -> sa.Select[Any]:
    if wanted.type in NAMES:
        query = query.where(IS_RARE)
    for column, value in ((t.events.c.stream, wanted.stream), (t.events.c.type, wanted.type)):
        query = query.where(column == value) if value else query
    if wanted.sources is not None:
        query = query.where(t.events.c.stream.in_(_streams_of(wanted.sources)))
    return query


def _events() -> sa.Select[Any]:
    own = t.private_parts.c.event == t.events.c.id
    placed = t.positions.join(t.events, t.events.c.id == t.positions.c.event)
    return sa.select(t.positions.c.position, t.events.c.body, t.private_parts.c.parts).select_from(
        placed.outerjoin(t.private_parts, own)
    )


def _read(connection: sa.Connection, query: sa.Select[Any]) -> list[Positioned]:
    rows = connection.execute(query)
    return [Positioned(at, decode_event(body, parts)) for at, body, parts in rows]


def _streams_of(sources: tuple[str, ...]) -> sa.Select[tuple[str]]:
    return sa.select(t.files.c.stream).where(t.files.c.source.in_(sources))

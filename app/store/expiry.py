"""What retention looks at and forgets, a few hundred rows at a time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import sqlalchemy as sa

from app.store import projections
from app.store import tables as t

_SETTLED = sa.or_(t.deliveries.c.verdict != "conflict", t.deliveries.c.settled != "")


class Kept(NamedTuple):
    """Something that is kept: its number, since when, and what decides for how long."""

    id: int
    since_ms: int
    source: str
    recipe: str
    payload: int


class KeptFile(NamedTuple):
    """A file that has something that may be due."""

    stream: str
    source: str
    recipe: str


def payloads(connection: sa.Connection, after: int, *, before_ms: int, limit: int) -> list[Kept]:
    """The next first deliveries, by number, whose bodies are still there."""
    found = t.receipts.c
    query = (
        sa.select(
            found.id,
            found.accepted_ms,
            found.source,
            sa.func.coalesce(t.files.c.recipe, ""),
            found.payload,
        )
        .select_from(
            t.receipts.join(t.payloads, t.payloads.c.id == found.payload).outerjoin(
                t.files, t.files.c.stream == found.stream
            )
        )
        .where(found.id > after, found.accepted_ms <= before_ms, t.payloads.c.body.is_not(None))
        .order_by(found.id)
        .limit(limit)
    )
    return [Kept(*row) for row in connection.execute(query)]


def deliveries(connection: sa.Connection, after: int, *, before_ms: int, limit: int) -> list[Kept]:
    """The next repeats, refusals and settled conflicts, by number."""
    found = t.deliveries.c
    query = (
        sa.select(
            found.id,
            found.received_ms,
            found.source,
            sa.literal(""),
            sa.func.coalesce(found.payload, 0),
        )
        .where(found.id > after, found.received_ms <= before_ms, _SETTLED)
        .order_by(found.id)
        .limit(limit)
    )
    return [Kept(*row) for row in connection.execute(query)]


def attempts(connection: sa.Connection, after: int, *, before_ms: int, limit: int) -> list[Kept]:
    """The next attempts that have ended, by number."""
    found = t.attempts.c
    query = (
        sa.select(
            found.id,
            found.ended_ms,
            sa.func.coalesce(t.files.c.source, ""),
            sa.func.coalesce(t.files.c.recipe, ""),
            sa.literal(0),
        )
        .select_from(t.attempts.outerjoin(t.files, t.files.c.stream == found.stream))
        .where(found.id > after, found.ended_ms <= before_ms)
        .order_by(found.id)
        .limit(limit)
    )
    return [Kept(*row) for row in connection.execute(query)]


def told(connection: sa.Connection, after: str, *, before_ms: int, limit: int) -> list[KeptFile]:
    """The next files with bytes of messages that ended up to then."""
    ended = (
        sa.select(t.messages.c.id)
        .join(t.bodies, t.bodies.c.message == t.messages.c.id)
        .where(
            t.messages.c.stream == t.files.c.stream,
            t.messages.c.state.in_(("delivered", "dead", "skipped", "discarded")),
            t.messages.c.ended_ms.between(1, before_ms),
            t.bodies.c.data.is_not(None),
        )
    )
    return _files(connection, after, limit, t.files.c.opened_ms <= before_ms, ended.exists())


def stored(connection: sa.Connection, after: str, *, before_ms: int, limit: int) -> list[KeptFile]:
    """The next files with artifacts that were opened up to then."""
    made = sa.select(t.artifacts.c.id).where(t.artifacts.c.stream == t.files.c.stream)
    return _files(connection, after, limit, t.files.c.opened_ms <= before_ms, made.exists())


def deleted(connection: sa.Connection, after: str, *, before_ms: int, limit: int) -> list[KeptFile]:
    """The next files with artifacts that were deleted at their source, and unchanged since then."""
    made = sa.select(t.artifacts.c.id).where(t.artifacts.c.stream == t.files.c.stream)
    is_gone = sa.and_(t.files.c.state == "deleted", t.files.c.changed_ms <= before_ms)
    return _files(connection, after, limit, is_gone, made.exists())


def _files(
    connection: sa.Connection, after: str, limit: int, *where: sa.ColumnElement[bool]
) -> list[KeptFile]:
    found = t.files.c
    query = sa.select(found.stream, found.source, found.recipe).where(found.stream > after, *where)
    rows = connection.execute(query.order_by(found.stream).limit(limit))
    return [KeptFile(*row) for row in rows]


def blank_payloads(connection: sa.Connection, kept: Sequence[Kept]) -> None:
    """Remove the bodies; the receipts stay."""
    ids = [each.payload for each in kept]
    connection.execute(t.payloads.update().where(t.payloads.c.id.in_(ids)).values(body=None))


def remove_deliveries(connection: sa.Connection, kept: Sequence[Kept]) -> None:
    """Remove deliveries from the history, with their bodies."""
    bodies = [each.payload for each in kept if each.payload]
    connection.execute(t.payloads.delete().where(t.payloads.c.id.in_(bodies)))
    ids = [each.id for each in kept]
    connection.execute(t.deliveries.delete().where(t.deliveries.c.id.in_(ids)))


def remove_attempts(connection: sa.Connection, kept: Sequence[Kept]) -> None:
    """Remove attempts from the history."""
    ids = [each.id for each in kept]
    connection.execute(t.attempts.delete().where(t.attempts.c.id.in_(ids)))


def place(connection: sa.Connection, name: str) -> int:
    """The number that a former sweep came to."""
    query = sa.select(t.cursors.c.value).where(t.cursors.c.name == f"sweep:{name}")
    return int(connection.execute(query).scalar() or b"0")


def keep_place(connection: sa.Connection, name: str, number: int, now_ms: int) -> None:
    """Leave for the next sweep how far this one came."""
    row = {"name": f"sweep:{name}", "value": str(number).encode(), "changed_ms": now_ms}
    projections.upsert(connection, t.cursors, [row])


def take_turn(connection: sa.Connection, now_ms: int, every_ms: int) -> bool:
    """Whether a sweep is due; of several processes one is told so."""
    name = "sweep"
    row = {"name": name, "value": b"", "changed_ms": 0}
    if connection.dialect.name == "postgresql":
        connection.execute(sa.text("SELECT pg_advisory_xact_lock(7365777)"))
    last = connection.execute(
        sa.select(t.cursors.c.changed_ms).where(t.cursors.c.name == name)
    ).scalar()
    if last is not None and last > now_ms - every_ms:
        return False
    projections.upsert(connection, t.cursors, [{**row, "changed_ms": now_ms}])
    return True

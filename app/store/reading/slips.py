"""All that a slip tells of one file, from the log, the receipts and the history."""

from __future__ import annotations

from typing import Any

import msgspec
import sqlalchemy as sa

from app.store import tables as t
from domain import chain
from domain.masking import shown_address

_MOST_EVENTS = 10_000


def events(connection: sa.Connection, stream: str) -> list[dict[str, Any]]:
    """The file's events as they are stored and hashed, each with the hash before it."""
    before = t.positions.alias()
    query = (
        sa.select(
            t.events.c.body,
            t.positions.c.position,
            t.positions.c.hash,
            before.c.hash.label("previous"),
            t.private_parts.c.salt,
            t.private_parts.c.parts,
        )
        .select_from(
            t.events.join(t.positions, t.positions.c.event == t.events.c.id)
            .outerjoin(before, before.c.position == t.positions.c.position - 1)
            .outerjoin(t.private_parts, t.private_parts.c.event == t.events.c.id)
        )
        .where(t.events.c.stream == stream)
        .order_by(t.events.c.revision)
        .limit(_MOST_EVENTS)
    )
    return [
        {
            "position": row.position,
            "previous": (row.previous or chain.GENESIS).hex(),
            "hash": row.hash.hex(),
            "body": row.body.decode(),
            "salt": (row.salt or b"").hex(),
            "private": _told(msgspec.json.decode(row.parts)) if row.parts else {},
        }
        for row in connection.execute(query)
    ]


def _told(private: dict[str, str]) -> dict[str, str]:
    """The private values, but for addresses that prove themselves: who has one has the file."""
    return {name: value for name, value in private.items() if value == shown_address(value)}


def receipts(connection: sa.Connection, stream: str) -> list[dict[str, Any]]:
    """What was received about the file: the digest of the exact bytes, and the verdict."""
    found = t.receipts.c
    columns = (
        found.event,
        found.source,
        found.verdict,
        found.digest,
        found.accepted_ms,
        found.type,
        found.key_id,
    )
    query = sa.select(*columns).where(found.stream == stream).order_by(found.id)
    return [dict(row) for row in connection.execute(query).mappings()]


def messages(connection: sa.Connection, stream: str) -> list[dict[str, Any]]:
    """What was told about the file, and how each destination answered."""
    told, tried = t.messages.c, t.attempts.c
    query = sa.select(
        told.id,
        told.destination,
        told.type,
        told.version,
        told.sequence,
        told.state,
        told.ended_ms,
        told.reference,
    )
    rows = connection.execute(query.where(told.stream == stream).order_by(told.sequence, told.id))
    attempts = (
        sa.select(tried.work, tried.number, tried.started_ms, tried.ended_ms, tried.outcome)
        .where(tried.stream == stream)
        .order_by(tried.id)
    )
    by_work: dict[str, list[dict[str, Any]]] = {}
    for row in connection.execute(attempts).mappings():
        by_work.setdefault(row["work"], []).append({k: row[k] for k in row if k != "work"})
    return [dict(row) | {"attempts": by_work.get(row["id"], [])} for row in rows.mappings()]


def artifacts(connection: sa.Connection, stream: str) -> list[dict[str, Any]]:
    """What came of the file, by digest."""
    found = t.artifacts.c
    query = sa.select(found.name, found.sha256, found.size_bytes, found.media_type)
    rows = connection.execute(
        query.where(found.stream == stream).order_by(found.name, found.sha256)
    )
    return [dict(row) for row in rows.mappings()]

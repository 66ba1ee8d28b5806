"""Where the log ends, signed: whoever keeps that can tell a log that was cut or written anew."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa

from app.store import event_log, installation, signing
from app.store import tables as t
from app.store.event_log import Head
from domain.telling import instant

KIND = "laufzettel.checkpoint.1"


@dataclass(frozen=True, slots=True)
class Standing:
    """What a store stands for at a moment: whose it is, and where its log ends."""

    name: str
    incarnation: int
    key: bytes
    head: Head


def standing(connection: sa.Connection) -> Standing | None:
    """Where the store stands; ``None`` where it was never started with."""
    identity = installation.find(connection)
    if identity is None:
        return None
    head = event_log.head(connection)
    return Standing(identity.name, identity.incarnation, identity.key, head)


def checkpoint(stands: Standing, now_ms: int) -> dict[str, Any]:
    """The signed end of the log."""
    return signing.signed(
        stands.key,
        {
            "kind": KIND,
            "installation": stands.name,
            "incarnation": stands.incarnation,
            "position": stands.head.position,
            "hash": stands.head.hash.hex(),
            "at": instant(now_ms * 1000),
        },
    )


def note(stands: Standing, now_ms: int) -> tuple[str, bytes]:
    """Name and bytes of the checkpoint as it is left beside the artifacts."""
    name = f"{stands.incarnation:06}.{stands.head.position:018}.json"
    return name, json.dumps(checkpoint(stands, now_ms), sort_keys=True).encode()


def contradiction(connection: sa.Connection, data: bytes) -> str:
    """What a checkpoint says against this log; "" for nothing.

    One of a former incarnation, of what a restore left behind, says nothing about this log.
    """
    stands = standing(connection)
    try:
        told = json.loads(data)
        position, incarnation = int(told["position"]), int(told["incarnation"])
    except (ValueError, KeyError, TypeError):
        return "a checkpoint cannot be read"
    if stands is None or signing.signer_of(told) != signing.public_key(stands.key):
        return "a checkpoint is not signed by this installation"
    if incarnation < stands.incarnation and position > _restored_at(connection):
        return ""
    query = sa.select(t.positions.c.hash).where(t.positions.c.position == position)
    found = connection.execute(query).scalar()
    if position and found is None:
        return f"the log ends before position {position}, which was signed at {told['at']}"
    is_same = not position or bytes(found or b"").hex() == told["hash"]
    return "" if is_same else f"the log is not the one that was signed at {told['at']}"


def _restored_at(connection: sa.Connection) -> int:
    """The position before the last restore."""
    query = (
        sa.select(sa.func.max(t.positions.c.position))
        .select_from(t.positions.join(t.events, t.events.c.id == t.positions.c.event))
        .where(t.events.c.type == "LogRestored")
    )
    return int(connection.execute(query).scalar() or 1) - 1

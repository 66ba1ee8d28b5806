"""Repeats, conflicts and refusals: the history of what arrived beside the first deliveries."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Literal

import sqlalchemy as sa

from app.store import rows
from app.store import tables as t

_INSERT = t.deliveries.insert()
Verdict = Literal[
    "accepted", "duplicate", "conflict", "ignored", "stale", "rejected", "failed", "unauthenticated"
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Delivery:
    """One attempt to tell us that was no first delivery.

    ``reason`` is in words and holds no value of the body. ``settled`` is how an operator settled a
    conflict. ``count`` is of refusals of the same kind that were counted together.
    """

    source: str
    verdict: Verdict
    received_ms: int
    reason: str = ""
    event: str | None = None
    event_id: str | None = None
    delivery_id: str | None = None
    digest: str = ""
    key_id: str = ""
    payload: int | None = None
    settled: str = ""
    count: int = 1


def insert(connection: sa.Connection, numbered: Iterable[tuple[int, Delivery]]) -> None:
    """Add deliveries under these numbers."""
    found = [{"id": number, **asdict(delivery)} for number, delivery in numbered]
    rows.write(connection, _INSERT, found)


def is_quarantined(connection: sa.Connection, event: str, digest: str) -> bool:
    """Whether these other bytes under a known event are in quarantine already."""
    query = sa.select(t.deliveries.c.id).where(
        t.deliveries.c.event == event,
        t.deliveries.c.digest == digest,
        t.deliveries.c.verdict == "conflict",
    )
    return connection.execute(query.limit(1)).first() is not None

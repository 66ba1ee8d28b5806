"""Due work, read so that nothing that stands still keeps the rest from moving.

Downloads are read per source, transformations per step and messages per destination, each only as
far as it has free slots and is neither paused nor asked to wait nor cut off by its breaker.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import sqlalchemy as sa

from app.store import tables as t
from app.store.leases import WorkKind


@dataclass(frozen=True, slots=True)
class Due:
    """A piece of work that may be claimed now."""

    id: str
    kind: WorkKind
    stream: str
    scope: str


@dataclass(frozen=True, slots=True)
class Slots:
    """How many pieces of work of a scope may begin now."""

    scope: str
    free: int


def due_messages(
    connection: sa.Connection, slots: Iterable[Slots], now_ms: int, paused_sources: frozenset[str]
) -> list[Due]:
    """Due messages of each destination, half of the slots for the oldest, half for the newest.

    One file has one message per destination among them: the one with the lowest sequence.
    """
    found: dict[str, Due] = {}
    for slot in slots:
        for descending in (False, True):
            rows = connection.execute(
                _messages(slot, now_ms, paused_sources, descending=descending)
            )
            for row in rows:
                found[row.id] = Due(row.id, "message", row.stream, slot.scope)
    return list(found.values())


def _messages(
    slot: Slots, now_ms: int, paused: frozenset[str], *, descending: bool
) -> sa.Select[tuple[str, str]]:
    destination = slot.scope.removeprefix("destination:")
    order = t.messages.c.due_ms.desc() if descending else t.messages.c.due_ms
    leased = sa.select(t.leases.c.id).where(t.leases.c.id == t.messages.c.id)
    query = (
        sa.select(t.messages.c.id, t.messages.c.stream)
        .where(t.messages.c.destination == destination, t.OPEN_MESSAGES)
        .where(t.messages.c.due_ms <= now_ms, ~leased.exists())
        .order_by(order)
        .limit(max(slot.free // 2 + slot.free % 2, 1))
    )
    return query.where(t.messages.c.source.not_in(paused)) if paused else query


@dataclass(frozen=True, slots=True)
class Excluded:
    """What does not move now: whole sources, steps, and recipes (by digest)."""

    sources: frozenset[str] = frozenset()
    steps: frozenset[str] = frozenset()
    recipes: frozenset[str] = frozenset()


def due_jobs(
    connection: sa.Connection, kind: WorkKind, now_ms: int, excluded: Excluded, *, limit: int
) -> list[Due]:
    """Due jobs of one kind, the longest due first."""
    leased = sa.select(t.leases.c.id).where(t.leases.c.id == t.jobs.c.id)
    query = (
        sa.select(t.jobs.c.id, t.jobs.c.stream, t.jobs.c.source, t.jobs.c.name)
        .where(t.jobs.c.kind == kind, t.OPEN_JOBS, t.jobs.c.due_ms <= now_ms)
        .where(~t.jobs.c.asked, ~leased.exists())
        .order_by(t.jobs.c.due_ms)
        .limit(limit)
    )
    for column, names in (
        (t.jobs.c.source, excluded.sources),
        (t.jobs.c.name, excluded.steps),
        (t.jobs.c.recipe, excluded.recipes),
    ):
        if names:
            query = query.where(column.not_in(names))
    prefix = "source" if kind == "download" else "step"
    return [
        Due(row.id, kind, row.stream, f"{prefix}:{row.source if kind == 'download' else row.name}")
        for row in connection.execute(query)
    ]


def next_due_ms(connection: sa.Connection) -> int | None:
    """When the next piece of work that waits is due, if any waits."""
    ends = [
        connection.execute(sa.select(sa.func.min(table.c.due_ms)).where(states)).scalar()
        for table, states in ((t.jobs, t.OPEN_JOBS), (t.messages, t.OPEN_MESSAGES))
    ]
    return min((end for end in ends if end is not None), default=None)


def running(connection: sa.Connection) -> Mapping[str, int]:
    """How many leases each scope has."""
    query = sa.select(t.leases.c.scope, sa.func.count()).group_by(t.leases.c.scope)
    return {row[0]: row[1] for row in connection.execute(query)}


def waits(connection: sa.Connection, now_ms: int) -> dict[str, int]:
    """The scopes that were asked to wait, and until when."""
    query = sa.select(t.not_before.c.scope, t.not_before.c.until_ms)
    rows = connection.execute(query.where(t.not_before.c.until_ms > now_ms))
    return {row.scope: row.until_ms for row in rows}

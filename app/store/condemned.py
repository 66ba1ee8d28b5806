"""Blobs that nothing refers to: marked, spared when they are stored again, taken when due."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from functools import cache

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql, sqlite

from app.store import rows
from app.store import tables as t


@dataclass(frozen=True, slots=True)
class Mark:
    """A condemned blob, and since when."""

    sha256: str
    since_ms: int


def mark(
    connection: sa.Connection, digests: Collection[str], *, since_ms: int, due_ms: int
) -> None:
    """Condemn these blobs; one that is condemned already keeps its earlier date."""
    found = [{"sha256": d, "since_ms": since_ms, "due_ms": due_ms} for d in sorted(digests)]
    rows.write(connection, _mark(connection.dialect.name), found)


@cache
def _mark(dialect: str) -> sa.Insert:
    insert = sqlite.insert(t.condemned) if dialect == "sqlite" else postgresql.insert(t.condemned)
    news = {"since_ms": insert.excluded.since_ms, "due_ms": insert.excluded.due_ms}
    return insert.on_conflict_do_update(
        index_elements=["sha256"], set_=news, where=t.condemned.c.due_ms > insert.excluded.due_ms
    )


def spare(connection: sa.Connection, sha256: str) -> None:
    """Lift the mark: the bytes are wanted again."""
    connection.execute(t.condemned.delete().where(t.condemned.c.sha256 == sha256))


def due(connection: sa.Connection, now_ms: int, *, after: str, limit: int) -> list[Mark]:
    """The next marks whose date has come, by digest."""
    found = t.condemned.c
    query = (
        sa.select(found.sha256, found.since_ms)
        .where(found.due_ms <= now_ms, found.sha256 > after)
        .order_by(found.sha256)
        .limit(limit)
    )
    return [Mark(*row) for row in connection.execute(query)]


def is_forfeit(connection: sa.Connection, sha256: str, now_ms: int) -> bool:
    """Whether the blob is to be removed now, by whoever holds the digest's lock.

    Its mark stays until the blob is gone: who stores the same bytes sees it, and waits for the
    lock. One that is wanted again loses the mark here. It is not while work is under way that
    began before the mark: that may have found the blob there, and not have recorded it yet.
    """
    own = t.condemned.c.sha256 == sha256
    since_ms = connection.execute(
        sa.select(t.condemned.c.since_ms).where(own, t.condemned.c.due_ms <= now_ms)
    ).scalar()
    if since_ms is None:
        return False
    if not unreferenced(connection, [sha256]):
        spare(connection, sha256)
        return False
    return not is_awaited(connection, since_ms)


def is_awaited(connection: sa.Connection, since_ms: int) -> bool:
    """Whether work that stores blobs has been under way since then."""
    older = sa.select(t.leases.c.id).where(
        t.leases.c.kind != "message", t.leases.c.started_ms <= since_ms
    )
    return connection.execute(older.limit(1)).first() is not None


def unreferenced(connection: sa.Connection, digests: Iterable[str]) -> set[str]:
    """Those of the digests that no artifact has."""
    wanted = set(digests)
    query = sa.select(t.artifacts.c.sha256).where(t.artifacts.c.sha256.in_(wanted)).distinct()
    return wanted - set(connection.execute(query).scalars())


def marked(connection: sa.Connection, digests: Collection[str]) -> set[str]:
    """Those of the digests that are condemned."""
    query = sa.select(t.condemned.c.sha256).where(t.condemned.c.sha256.in_(digests))
    return set(connection.execute(query).scalars())

"""Answers to requests that a client may repeat: the first one is told again."""

from __future__ import annotations

from dataclasses import dataclass

import sqlalchemy as sa

from app.store import tables as t

# A request that died on the way may be tried again after this.
_ABANDONED_MS = 60_000


@dataclass(frozen=True, slots=True)
class Before:
    """An earlier request under the same key; ``answer`` is ``None`` while it is under way."""

    digest: str
    answer: bytes | None


def begin(connection: sa.Connection, key: str, digest: str, now_ms: int) -> Before | None:
    """Claim a key for a request; what had claimed it before, if anything had."""
    query = sa.select(t.idempotency).where(t.idempotency.c.key == key)
    row = connection.execute(query).first()
    if row is not None and (row.answer is not None or now_ms - row.at_ms < _ABANDONED_MS):
        return Before(row.digest, row.answer)
    if row is not None:
        connection.execute(t.idempotency.delete().where(t.idempotency.c.key == key))
    connection.execute(t.idempotency.insert().values(key=key, digest=digest, at_ms=now_ms))
    return None


def finish(connection: sa.Connection, key: str, answer: bytes | None) -> None:
    """Keep the answer for repeats; without one the key is free again."""
    found = t.idempotency.c.key == key
    if answer is None:
        connection.execute(t.idempotency.delete().where(found))
    else:
        connection.execute(t.idempotency.update().where(found).values(answer=answer))

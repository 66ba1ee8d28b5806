"""The locks that keep two writers of one stream apart, until the transaction ends."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

import sqlalchemy as sa

from app.store.engine import Store, translated


def lock(connection: sa.Connection, streams: Iterable[str]) -> None:
    """Lock the streams; to be called before the transaction's first write.

    On SQLite the transaction itself is the only one that writes.
    """
    if connection.dialect.name == "sqlite":
        return
    # One array in order: two batches that share two streams would otherwise wait in a circle.
    keys = sorted({lock_key(stream) for stream in streams})
    connection.execute(_LOCK, {"keys": keys})


@contextmanager
def alone(store: Store, what: str) -> Iterator[None]:
    """While inside, no other process is inside under the same name; nothing else is locked.

    On SQLite there is no other process. Raises ``StoreUnavailableError``.
    """
    if store.backend == "sqlite":
        yield
        return
    with translated(), store.writing.begin() as connection:
        connection.execute(_LOCK, {"keys": [lock_key(f"laufzettel:{what}")]})
        yield


def lock_key(stream: str) -> int:
    """The advisory lock of a stream: the first 63 bits of its SHA-256."""
    return int.from_bytes(hashlib.sha256(stream.encode()).digest()[:8], "big") >> 1


_LOCK = sa.text("SELECT pg_advisory_xact_lock(k) FROM unnest(CAST(:keys AS bigint[])) AS k")

"""The locks that keep two writers of one stream apart, until the transaction ends."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

import sqlalchemy as sa

from app.store import rows
from app.store.engine import Store, translated


def lock(connection: sa.Connection, streams: Iterable[str]) -> None:
    """Lock the streams; to be called before the transaction's first write.

    On SQLite the transaction itself is the only one that writes.
    """
    if connection.dialect.name != "sqlite":
        ask(connection, streams)()


def ask(connection: sa.Connection, streams: Iterable[str]) -> rows.Answer:
    """Send for the locks on PostgreSQL; they are there once the answer is (``rows.together``)."""
    # One array in order: two batches that share two streams would otherwise wait in a circle.
    keys = sorted({lock_key(stream) for stream in streams})
    return rows.ask(connection, _LOCK, {"keys": _array(keys)})


@contextmanager
def alone(store: Store, what: str) -> Iterator[None]:
    """While inside, no other process is inside under the same name; nothing else is locked.

    On SQLite there is no other process. Raises ``StoreUnavailableError``.
    """
    if store.backend == "sqlite":
        yield
        return
    with translated(), store.writing.begin() as connection:
        ask(connection, [f"laufzettel:{what}"])()
        yield


def lock_key(stream: str) -> int:
    """The advisory lock of a stream: the first 63 bits of its SHA-256."""
    return int.from_bytes(hashlib.sha256(stream.encode()).digest()[:8], "big") >> 1


def _array(numbers: Iterable[int]) -> str:
    return "{" + ",".join(map(str, numbers)) + "}"


_LOCK = sa.text("SELECT pg_advisory_xact_lock(k) FROM unnest(CAST(:keys AS bigint[])) AS k")

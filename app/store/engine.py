"""An engine a backend: how connections are made, and what each of them promises.

SQLite: one process owns the store (a lock on a file beside it), one connection writes and
checkpoints, all others only read. PostgreSQL: pooled connections, READ COMMITTED.
"""

from __future__ import annotations

import fcntl
import os
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import sqlalchemy as sa
from sqlalchemy import event
from sqlalchemy.pool import QueuePool

from app.store.errors import StoreOwnedError, StoreUnavailableError

Backend = Literal["sqlite", "postgresql"]
# For those who hand a connection on and write no SQL themselves.
Connection = sa.Connection

# A delivery that cannot be stored is answered within 5 s.
BUSY_TIMEOUT_S = 4.0
# From 3.7.0 to 3.51.2 two connections that checkpoint at once can corrupt a WAL database; the
# store keeps to one that does, and `check` names the version.
FIRST_SAFE_SQLITE = (3, 51, 3)


@dataclass(frozen=True, slots=True)
class Store:
    """A database, and the two ways into it: ``read`` a snapshot, ``writer`` for the Ledger."""

    backend: Backend
    reading: sa.Engine
    writing: sa.Engine
    release: Callable[[], None]

    @contextmanager
    def read(self) -> Iterator[sa.Connection]:
        """A connection that only reads, on one snapshot on SQLite.

        Raises ``StoreUnavailableError`` where the database does not answer.
        """
        with translated(), self.reading.connect() as connection:
            yield connection

    @contextmanager
    def snapshot(self) -> Iterator[sa.Connection]:
        """A connection on which every statement sees the same moment; leave it soon.

        Raises ``StoreUnavailableError`` where the database does not answer.
        """
        with self.read() as connection:
            if self.backend == "postgresql":
                # An open snapshot keeps vacuum from its work, so none may last.
                connection.execution_options(
                    isolation_level="REPEATABLE READ", postgresql_readonly=True
                )
            yield connection

    def ping(self) -> None:
        """Ask the database for an answer; raises ``StoreUnavailableError`` if none comes."""
        with self.read() as connection:
            connection.execute(sa.select(1))

    def close(self) -> None:
        """Close every connection and give up the ownership."""
        self.reading.dispose()
        self.writing.dispose()
        self.release()


@contextmanager
def translated() -> Iterator[None]:
    """Name what the driver raises when the database is down, full, locked or too slow."""
    try:
        yield
    except (sa.exc.OperationalError, sa.exc.InterfaceError, sa.exc.TimeoutError) as error:
        raise StoreUnavailableError(_words(error)) from error
    except sa.exc.InternalError as error:
        # A server that was demoted to a standby, while connections to it were open.
        if getattr(error.orig, "sqlstate", None) != "25006":
            raise
        raise StoreUnavailableError(_words(error)) from error


def is_transient(error: sa.exc.DBAPIError) -> bool:
    """Whether the same transaction may pass if tried again: a deadlock, a serialization failure."""
    return getattr(error.orig, "sqlstate", None) in {"40001", "40P01"}


def is_lost(error: BaseException) -> bool:
    """Whether the connection broke, so that nobody knows what became of a commit."""
    return isinstance(error, sa.exc.DBAPIError) and error.connection_invalidated


def _words(error: Exception) -> str:
    """The driver's own words, without the statement and its values."""
    origin = getattr(error, "orig", None)
    return str(origin or error).split("\n", 1)[0]


def open_store(url: str, *, is_pooled: bool = False) -> Store:
    """Open the store at this address; raises ``StoreOwnedError`` if another process has it.

    ``is_pooled`` says that a pooler in transaction mode stands before the database: then no
    statement is prepared. The address says it too, by ``?prepared=off``.
    """
    address = sa.make_url(url)
    if address.get_backend_name() == "sqlite":
        return _open_sqlite(Path(address.database or ""))
    return _open_postgresql(address, is_pooled=is_pooled)


def open_reading(url: str) -> Store:
    """The store beside whoever owns it, for reading only; nothing is made where none is."""
    address = sa.make_url(url)
    if address.get_backend_name() != "sqlite":
        return _open_postgresql(address, is_pooled=False)
    reading = _sqlite_engine(Path(address.database or ""), pool_size=1, pragmas=READER_PRAGMAS)
    event.listen(reading, "begin", _begin_deferred)
    return Store(backend="sqlite", reading=reading, writing=reading, release=lambda: None)


def _open_sqlite(path: Path) -> Store:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        release = _own(path)
    except OSError as error:
        raise StoreUnavailableError(f"{path} cannot be used ({error.strerror})") from error
    writing = _sqlite_engine(path, pool_size=1, pragmas=WRITER_PRAGMAS)
    reading = _sqlite_engine(path, pool_size=16, pragmas=READER_PRAGMAS)
    event.listen(writing, "begin", _begin_immediate)
    event.listen(reading, "begin", _begin_deferred)
    return Store(backend="sqlite", reading=reading, writing=writing, release=release)


# FULL: an event that was answered with 202 survives a power cut; NORMAL could lose it.
WRITER_PRAGMAS = (
    "PRAGMA journal_mode=WAL",
    "PRAGMA synchronous=FULL",
    "PRAGMA foreign_keys=ON",
    "PRAGMA wal_autocheckpoint=2000",
    "PRAGMA temp_store=MEMORY",
    "PRAGMA cache_size=-32000",
    # Some builds leave what was erased on free pages of the file.
    "PRAGMA secure_delete=ON",
)
READER_PRAGMAS = ("PRAGMA query_only=ON", "PRAGMA wal_autocheckpoint=0", "PRAGMA cache_size=-8000")


def _sqlite_engine(path: Path, *, pool_size: int, pragmas: tuple[str, ...]) -> sa.Engine:
    engine = sa.create_engine(
        sa.URL.create("sqlite", database=str(path)),
        poolclass=QueuePool,
        pool_size=pool_size,
        max_overflow=0,
        pool_timeout=BUSY_TIMEOUT_S,
        connect_args={
            "timeout": BUSY_TIMEOUT_S,
            "check_same_thread": False,
            "isolation_level": None,
        },
    )

    def prepare(connection: sqlite3.Connection, _: Any) -> None:
        for pragma in pragmas:
            connection.execute(pragma)

    event.listen(engine, "connect", prepare)
    return engine


def _begin_immediate(connection: sa.Connection) -> None:
    connection.exec_driver_sql("BEGIN IMMEDIATE")


def _begin_deferred(connection: sa.Connection) -> None:
    connection.exec_driver_sql("BEGIN")


def _own(path: Path) -> Callable[[], None]:
    """Take the store for this process; gives the function that gives it up."""
    lock = os.open(path.with_name(path.name + ".lock"), os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        os.close(lock)
        raise StoreOwnedError(
            f"{path} is in use by another process; stop `laufzettel run` first"
        ) from error
    kept = ExitStack()
    kept.callback(os.close, lock)
    return kept.close  # closing twice closes once


def _open_postgresql(address: sa.URL, *, is_pooled: bool) -> Store:
    is_pooled = is_pooled or address.query.get("prepared") == "off"
    address = address.difference_update_query(["prepared"])
    options: dict[str, Any] = {"connect_timeout": int(BUSY_TIMEOUT_S)}
    if is_pooled:
        options["prepare_threshold"] = None
    engine = sa.create_engine(
        address.set(drivername="postgresql+psycopg"),
        # Small, for there are many processes, and a server has a hundred connections by default.
        pool_size=5,
        max_overflow=5,
        pool_timeout=BUSY_TIMEOUT_S,
        pool_pre_ping=True,
        isolation_level="READ COMMITTED",
        # As on SQLite, values go by their place (``app.store.rows``).
        paramstyle="format",
        connect_args=options,
    )
    return Store(backend="postgresql", reading=engine, writing=engine, release=lambda: None)

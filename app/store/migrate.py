"""The schema's version: what it is, what is missing to this program's, and the way there.

Steps are numbered and only lead forward. All pending ones take effect together, or none. A SQLite
store is copied into ``backup/`` beside it before it is changed.
"""

from __future__ import annotations

import io
import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import cast

import sqlalchemy as sa
from alembic import command
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory

import migrations
from app.points import point
from app.store.engine import Store, translated
from app.store.errors import SchemaError, StoreUnavailableError

# Two processes that start at once must not both upgrade; nor may one wait behind a long query
# with a lock that stops everything else.
_LOCK_KEY = 0x4C41_5546
_LOCK_TIMEOUT_MS = 5000


@dataclass(frozen=True, slots=True)
class Upgrade:
    """What an upgrade did: from where to where, and where the copy of the former store is."""

    before: str
    after: str
    copy: Path | None


@dataclass(frozen=True, slots=True)
class Step:
    """A numbered change of the schema."""

    revision: str
    title: str


def current(store: Store) -> str:
    """The schema's version, "" for a store without one."""
    with store.read() as connection:
        return _current(connection)


def newest() -> str:
    """The version that this program works with."""
    return str(_scripts().get_current_head())


def pending(store: Store) -> tuple[Step, ...]:
    """The steps that are missing, in order.

    Raises ``SchemaError`` if the schema is of a newer program.
    """
    return _pending(current(store))


def check(store: Store) -> None:
    """Raise ``SchemaError`` unless the schema is exactly this program's."""
    missing = pending(store)
    if missing:
        names = ", ".join(step.revision for step in missing)
        raise SchemaError(f"the schema lacks {names}; run `laufzettel migrate`")


def prepare(store: Store) -> None:
    """Make an empty store ready, and bring one that is a file to this program's version.

    A shared store is left as it is, for others may be at work on it: raises ``SchemaError``
    unless it is of this version.
    """
    if store.backend == "sqlite" or not current(store):
        upgrade(store)
    check(store)


def upgrade(store: Store) -> Upgrade:
    """Bring the schema to this program's version, after a copy where the store is a file.

    Raises ``SchemaError`` if the schema is of a newer program.
    """
    before = current(store)
    if not _pending(before):
        return Upgrade(before, before, None)
    copy = _copied(store, before) if before and store.backend == "sqlite" else None
    with translated(), store.writing.begin() as connection:
        _bound(connection)
        command.upgrade(_config(connection=connection), "head")
        _settle(connection)
        after = _current(connection)
        point("migrate.commit.before")
    point("migrate.commit.after")
    # A SQLite connection that was open before keeps the former schema in mind for a while.
    store.reading.dispose()
    return Upgrade(before, after, copy)


def statements(store: Store) -> str:
    """The statements that an upgrade would run, as text; nothing is changed."""
    before = current(store)
    if not _pending(before):
        return ""
    said = io.StringIO()
    config = _config(dialect=store.backend, output=said)
    command.upgrade(config, f"{before}:head" if before else "head", sql=True)
    return said.getvalue()


def _current(connection: sa.Connection) -> str:
    return str(MigrationContext.configure(connection).get_current_revision() or "")


def _pending(before: str) -> tuple[Step, ...]:
    scripts = _scripts()
    known = {script.revision for script in scripts.walk_revisions()}
    if before and before not in known:
        raise SchemaError(
            f"the schema is of version {before}, this program knows {newest()}; "
            "install the newer program again, or restore a backup from before its upgrade"
        )
    found = scripts.iterate_revisions("head", before or "base")
    steps = [Step(script.revision, (script.doc or "").split("\n", 1)[0]) for script in found]
    return tuple(reversed(steps))


def _scripts() -> ScriptDirectory:
    return ScriptDirectory.from_config(_config())


def _config(
    *,
    connection: sa.Connection | None = None,
    dialect: str = "",
    output: io.StringIO | None = None,
) -> Config:
    config = Config(output_buffer=output) if output else Config()
    folder = Path(next(iter(migrations.__path__)))
    config.set_main_option("script_location", str(folder).replace("%", "%%"))
    config.attributes.update(connection=connection, dialect=dialect)
    return config


def _bound(connection: sa.Connection) -> None:
    if connection.dialect.name == "postgresql":
        connection.exec_driver_sql(f"SELECT pg_advisory_xact_lock({_LOCK_KEY})")
        connection.exec_driver_sql(f"SET LOCAL lock_timeout = {_LOCK_TIMEOUT_MS}")


def _settle(connection: sa.Connection) -> None:
    """Let the server end a session of this role that forgets an open transaction.

    One such session keeps new events from getting positions, and vacuum from its work.
    """
    if connection.dialect.name == "postgresql":
        connection.exec_driver_sql(_IDLE_LIMIT)


# Settings of a role in a database hold also behind a pooler, where a session's own do not.
_IDLE_LIMIT = """
DO $$ BEGIN EXECUTE format(
    'ALTER ROLE CURRENT_USER IN DATABASE %%I SET idle_in_transaction_session_timeout = 60000',
    current_database());
END $$
"""


def _copied(store: Store, version: str) -> Path:
    """Copy a SQLite store, durably, under a name that is free."""
    path = Path(store.writing.url.database or "")
    folder = path.parent / "backup"
    folder.mkdir(mode=0o700, exist_ok=True)
    place = next(p for p in _names(folder, path, version) if not p.exists())
    unfinished = place.with_suffix(".unfinished")
    with translated(), store.reading.connect() as connection:
        source = cast("sqlite3.Connection", connection.connection.driver_connection)
        _copy(source, unfinished)
    unfinished.chmod(0o600)
    _sync(unfinished)
    unfinished.rename(place)
    _sync(folder)
    return place


def _copy(source: sqlite3.Connection, place: Path) -> None:
    try:
        with closing(sqlite3.connect(place)) as target:
            source.backup(target)
    except sqlite3.Error as error:
        place.unlink(missing_ok=True)
        raise StoreUnavailableError(f"no copy could be made before the upgrade: {error}") from error


def _names(folder: Path, path: Path, version: str) -> Iterator[Path]:
    for number in range(1, 10_000):
        yield folder / f"{path.stem}.{version}.{number}{path.suffix}"


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)

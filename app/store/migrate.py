"""The schema's version: what it is, what is missing to this program's, and the way there.

Steps are numbered and only lead forward. A SQLite store is copied into ``backup/`` beside it before
it is changed, and all pending steps take effect together, or none. Others may be at work on a
PostgreSQL store meanwhile: there each step takes effect by itself, waits for a lock only as long as
others can bear, and builds its indexes beside them. The program before goes on working on the new
tables where the steps say so (``migrations``), and may be started on them again.
"""

from __future__ import annotations

import io
import os
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import cast

import sqlalchemy as sa
from alembic import command
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import Script, ScriptDirectory

import migrations
from app.points import point
from app.store import tables as t
from app.store.engine import Store, translated
from app.store.errors import SchemaError, StoreUnavailableError
from migrations import Index

# Two processes that start at once must not both upgrade.
_LOCK_KEY = 0x4C41_5546
# While a step waits for a table, everyone who comes after it waits too: rather try again.
_LOCK_TIMEOUT_MS = 1000
_TRIES = 30
_REST_S = 1.0
_NO_LOCK = "55P03"


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
    oldest: str
    indexes: tuple[Index, ...] = ()


def current(store: Store) -> str:
    """The schema's version, "" for a store without one."""
    with store.read() as connection:
        return _current(connection)


def newest() -> str:
    """The version that this program was made for."""
    return str(_scripts().get_current_head())


def steps(*, behind: str = "") -> tuple[Step, ...]:
    """All steps that this program knows behind a version, in order."""
    found = _scripts().iterate_revisions("head", behind or "base")
    return tuple(reversed([_step(script) for script in found]))


def pending(store: Store) -> tuple[Step, ...]:
    """The steps that are missing, in order; none where a newer program has been.

    Raises ``SchemaError`` if this program does not go together with the schema of a newer one.
    """
    with store.read() as connection:
        return _pending(connection)


def check(store: Store) -> None:
    """Raise ``SchemaError`` unless this program goes together with the schema."""
    missing = pending(store)
    if missing:
        names = ", ".join(step.revision for step in missing)
        raise SchemaError(f"the schema lacks {names}; run `laufzettel migrate`")


def check_same(store: Store) -> None:
    """Raise ``SchemaError`` unless the schema is exactly this program's."""
    check(store)
    if (found := current(store)) != newest():
        raise SchemaError(
            f"the schema is of version {found}, this program's is {newest()}, and it does not know "
            "all that is there; do this with the newer program"
        )


def fits(revision: str) -> bool:
    """Whether rows of that version of the schema go into the newest one as they are."""
    known = steps()
    return revision in {step.revision for step in known} and _oldest(known) <= revision


def prepare(store: Store) -> None:
    """Make an empty store ready, and bring one that is a file to this program's version.

    A shared store is left as it is, for others may be at work on it: raises ``SchemaError``
    unless this program goes together with it.
    """
    if store.backend == "sqlite" or not current(store):
        upgrade(store)
    check(store)


def upgrade(store: Store) -> Upgrade:
    """Bring the schema to this program's version, after a copy where the store is a file.

    Raises ``SchemaError`` if the schema is of a newer program that this one does not go together
    with, and ``StoreUnavailableError`` if a table is never free; steps before that are kept.
    """
    before = current(store)
    if not pending(store):
        return Upgrade(before, before, None)
    if before and store.backend == "postgresql":
        copy = None
        _upgrade_beside_others(store)
    else:
        copy = _copied(store, before) if before else None
        with translated(), store.writing.begin() as connection:
            if store.backend == "postgresql":
                connection.exec_driver_sql(f"SELECT pg_advisory_xact_lock({_LOCK_KEY})")
            _upgrade_to(connection, "head")
            point("migrate.commit.before")
        point("migrate.commit.after")
    if store.backend == "sqlite":
        # A connection that was open before keeps the former schema in mind for a while.
        store.reading.dispose()
    return Upgrade(before, current(store), copy)


def _upgrade_beside_others(store: Store) -> None:
    with translated(), store.writing.begin() as guard:
        # It holds neither a row nor a snapshot, so it is in nobody's way however long it lasts.
        guard.exec_driver_sql("SET LOCAL idle_in_transaction_session_timeout = 0")
        guard.exec_driver_sql(f"SELECT pg_advisory_xact_lock({_LOCK_KEY})")
        for step in _pending(guard):
            _build_beside(store, step.indexes)
            _take(store, step)


def _build_beside(store: Store, indexes: tuple[Index, ...]) -> None:
    """Build what is not there; what an upgrade that died left half built is made anew."""
    with store.writing.connect() as plain:
        connection = plain.execution_options(isolation_level="AUTOCOMMIT")
        for index in indexes:
            if connection.execute(_HALF_BUILT, {"name": index.name}).first():
                connection.exec_driver_sql(f"DROP INDEX CONCURRENTLY IF EXISTS {index.name}")
            if sa.inspect(connection).has_table(index.table):
                connection.exec_driver_sql(index.statement(beside=True))


_HALF_BUILT = sa.text(
    "SELECT 1 FROM pg_index WHERE indexrelid = to_regclass(:name) AND NOT indisvalid"
)


def _take(store: Store, step: Step) -> None:
    """Take one step, as soon as nobody holds what it needs."""
    for tries_left in reversed(range(_TRIES)):
        try:
            with store.writing.begin() as connection:
                connection.exec_driver_sql(f"SET LOCAL lock_timeout = {_LOCK_TIMEOUT_MS}")
                _upgrade_to(connection, step.revision)
                point("migrate.commit.before")
        except sa.exc.OperationalError as error:
            if getattr(error.orig, "sqlstate", None) != _NO_LOCK or not tries_left:
                raise
            threading.Event().wait(_REST_S)
        else:
            point("migrate.commit.after")
            return


def _upgrade_to(connection: sa.Connection, revision: str) -> None:
    command.upgrade(_config(connection=connection), revision)
    _settle(connection)
    if sa.inspect(connection).has_table(t.reach.name):
        connection.execute(t.reach.delete())
        connection.execute(t.reach.insert(), [{"id": 1, "oldest": _oldest(steps())}])


def statements(store: Store) -> str:
    """The statements that an upgrade would run, as text; nothing is changed."""
    before = current(store)
    if not pending(store):
        return ""
    said = io.StringIO()
    config = _config(dialect=store.backend, output=said)
    command.upgrade(config, f"{before}:head" if before else "head", sql=True)
    return said.getvalue()


def _current(connection: sa.Connection) -> str:
    return str(MigrationContext.configure(connection).get_current_revision() or "")


def _pending(connection: sa.Connection) -> tuple[Step, ...]:
    before, known = _current(connection), steps()
    if not before or before in {step.revision for step in known}:
        return steps(behind=before)
    oldest = connection.execute(sa.select(t.reach.c.oldest)).scalar()
    if oldest is not None and oldest <= known[-1].revision:
        return ()
    raise SchemaError(
        f"the schema is of version {before}, this program knows {newest()}; "
        "install the newer program again, or restore a backup from before its upgrade"
    )


def _step(script: Script) -> Step:
    """A step and what it says of itself; numbers are of one length, so they compare as text."""
    return Step(
        script.revision,
        (script.doc or "").split("\n", 1)[0],
        getattr(script.module, "OLDEST", script.revision),
        getattr(script.module, "INDEXES", ()),
    )


def _oldest(known: tuple[Step, ...]) -> str:
    return max(step.oldest for step in known)


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

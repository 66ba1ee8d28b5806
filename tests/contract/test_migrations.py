"""The schema: what the steps make is what the program expects, and the log refuses every change."""

from __future__ import annotations

import re
import sqlite3
import warnings
from collections.abc import Iterator
from pathlib import Path

import pytest
import sqlalchemy as sa
from alembic.autogenerate import compare_metadata
from alembic.runtime.migration import MigrationContext

from app.store import migrate
from app.store import tables as t
from app.store.engine import Store, open_store
from app.store.errors import SchemaError
from app.store.shared_tables import only_postgresql
from tests.stores import Postgres

EVENT = {"id": 1, "stream": "fil_a", "revision": 1, "type": "FileHeld", "body": b"{}"}
POSITION = {"position": 1, "event": 1, "hash": b"h"}


@pytest.fixture
def bare(side: str, tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Store]:
    """A store without a schema."""
    url = f"sqlite:///{tmp_path}/bare.db"
    if side == "postgresql":
        server: Postgres = request.getfixturevalue("postgres")
        url = server.fresh(template="template1")
    opened = open_store(url)
    yield opened
    opened.close()
    if side == "postgresql":
        server.drop(url)


def test_the_steps_make_the_schema_that_the_program_expects(store: Store) -> None:
    expected = [t.metadata, only_postgresql] if store.backend == "postgresql" else t.metadata
    with store.read() as connection, warnings.catch_warnings():
        # The inspector does not know xid8 by name.
        warnings.filterwarnings("ignore", message="Did not recognize type 'xid8'")
        context = MigrationContext.configure(
            connection, opts={"include_object": _is_ours, "compare_type": True}
        )
        assert compare_metadata(context, expected) == []  # type: ignore[arg-type]


def _is_ours(_: object, name: str | None, kind: str, *__: object) -> bool:
    return not (kind == "table" and name == "alembic_version")


def test_indexes_are_partial_where_the_program_says_so(store: Store) -> None:
    with store.read() as connection:
        found = sa.inspect(connection).get_indexes("jobs")
    due = next(index for index in found if index["name"] == "jobs_due")
    where = str(due["dialect_options"][f"{store.backend}_where"])
    assert re.findall(r"'(\w+)'", where) == ["ready", "waiting"]


def test_a_new_store_comes_to_the_newest_version_and_stays_there(bare: Store) -> None:
    assert migrate.current(bare) == ""
    steps = [step.revision for step in migrate.pending(bare)]
    assert steps == [f"{number:04}" for number in range(1, int(migrate.newest()) + 1)]
    with pytest.raises(SchemaError, match="laufzettel migrate"):
        migrate.check(bare)

    assert migrate.upgrade(bare) == migrate.Upgrade("", migrate.newest(), None)

    migrate.check(bare)
    assert migrate.pending(bare) == ()
    assert migrate.upgrade(bare).before == migrate.newest()


@pytest.mark.req("F10")
def test_a_step_that_says_it_reaches_back_only_adds(bare: Store) -> None:
    before: dict[str, dict[str, dict[str, object]]] = {}
    for step in migrate.steps():
        with bare.writing.begin() as connection:
            migrate._upgrade_to(connection, step.revision)
            after = described(connection)
        if step.oldest < step.revision:
            assert before.keys() <= after.keys()
            for table, known in before.items():
                new = after[table].keys() - known.keys()
                assert {name: after[table][name] for name in known} == known, (step, table)
                assert all(after[table][name]["may_be_left_out"] for name in new), (step, table)
        assert {index.name for index in step.indexes} <= names_of_indexes(bare)
        before = after
    assert any(step.oldest < step.revision for step in migrate.steps())


def described(connection: sa.Connection) -> dict[str, dict[str, dict[str, object]]]:
    """Every table with its columns, their types, and what an insert or an update must heed."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Did not recognize type 'xid8'")
        seen = sa.inspect(connection)
        return {
            table: {
                column["name"]: {
                    "type": str(column["type"]),
                    "may_be_left_out": column["nullable"] or column["default"] is not None,
                }
                for column in seen.get_columns(table)
            }
            | {
                str(index["name"]): {"columns": index["column_names"], "may_be_left_out": False}
                for index in seen.get_indexes(table)
                if index["unique"]
            }
            for table in seen.get_table_names()
            if table != "alembic_version"
        }


def names_of_indexes(store: Store) -> set[str]:
    with store.read() as connection:
        seen = sa.inspect(connection)
        return {
            str(index["name"])
            for name in seen.get_table_names()
            for index in seen.get_indexes(name)
        }


def test_a_dry_run_tells_the_statements_and_runs_none(bare: Store) -> None:
    said = migrate.statements(bare)
    assert "CREATE TABLE events" in said
    assert migrate.current(bare) == ""
    migrate.upgrade(bare)
    assert migrate.statements(bare) == ""


def test_a_schema_of_a_newer_program_is_left_alone(store: Store) -> None:
    _write(store, "UPDATE alembic_version SET version_num = '9999'")
    _write(store, "UPDATE reach SET oldest = '9999'")
    with pytest.raises(SchemaError, match="of version 9999, this program knows"):
        migrate.upgrade(store)
    with pytest.raises(SchemaError, match="restore a backup"):
        migrate.check(store)


def test_an_existing_file_is_copied_before_it_is_changed(tmp_path: Path) -> None:
    path = tmp_path / "laufzettel.db"
    store = open_store(f"sqlite:///{path}")
    migrate.upgrade(store)
    _insert(store, t.events, EVENT)
    with store.read() as connection:
        first, second = (migrate._copied(store, "0001") for _ in range(2))
        assert connection.execute(sa.select(t.events.c.id)).scalars().all() == [1]
    store.close()

    assert [p.name for p in sorted((tmp_path / "backup").iterdir())] == [first.name, second.name]
    copy = sqlite3.connect(first)
    assert copy.execute("SELECT id FROM events").fetchall() == [(1,)]
    copy.close()
    assert first.stat().st_mode & 0o777 == 0o600


@pytest.mark.req("B1")
@pytest.mark.parametrize("table, row", [(t.events, EVENT), (t.positions, POSITION)])
@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE {table} SET {column} = {column}",
        "UPDATE {table} SET {column} = {column} WHERE 1 = 0 OR {column} IS NOT NULL",
        "DELETE FROM {table}",
        "DELETE FROM {table} WHERE {column} IS NOT NULL",
    ],
)
def test_f_09_the_database_refuses_to_change_the_log(
    store: Store, table: sa.Table, row: dict[str, object], statement: str
) -> None:
    _insert(store, table, row)
    with pytest.raises(sa.exc.DBAPIError, match="is append-only"):
        _write(store, statement.format(table=table.name, column=table.columns.keys()[-1]))
    assert _rows(store, table) == [tuple(row.values())]


@pytest.mark.req("B1")
@pytest.mark.parametrize("table", [t.events, t.positions])
@pytest.mark.parametrize("side", ["postgresql"], indirect=False)
def test_f_09_the_database_refuses_to_empty_the_log(store: Store, table: sa.Table) -> None:
    with pytest.raises(sa.exc.DBAPIError, match="TRUNCATE is refused"):
        _write(store, f"TRUNCATE {table.name}")
    with pytest.raises(sa.exc.DBAPIError, match="TRUNCATE is refused"):
        _write(store, f"SET session_replication_role = replica; TRUNCATE {table.name}")


@pytest.mark.req("B1")
@pytest.mark.parametrize("table, row", [(t.events, EVENT), (t.positions, POSITION)])
@pytest.mark.parametrize("side", ["sqlite"], indirect=False)
def test_f_09_the_database_refuses_to_replace_a_row_of_the_log(
    store: Store, table: sa.Table, row: dict[str, object]
) -> None:
    _insert(store, table, row)
    columns = table.columns.keys()
    for key in columns[:2]:
        other = {**row, key: 99 if isinstance(row[key], int) else row[key]}
        replacing = sa.insert(table).prefix_with("OR REPLACE").values(other)
        with store.writing.begin() as connection, pytest.raises(sa.exc.DBAPIError):
            connection.execute(replacing)
    assert _rows(store, table) == [tuple(row.values())]


def test_two_events_never_share_a_revision(store: Store) -> None:
    _insert(store, t.events, EVENT)
    with pytest.raises(sa.exc.IntegrityError):
        _insert(store, t.events, {**EVENT, "id": 2})


@pytest.mark.parametrize("side", ["postgresql"], indirect=False)
def test_hot_tables_keep_room_and_are_cleaned_early(store: Store) -> None:
    query = sa.text("SELECT relname, reloptions FROM pg_class WHERE reloptions IS NOT NULL")
    with store.read() as connection:
        options = {row.relname: set(row.reloptions) for row in connection.execute(query)}
    assert {"fillfactor=80", "autovacuum_vacuum_scale_factor=0.01"} <= options["jobs"]
    assert {"fillfactor=80", "autovacuum_vacuum_scale_factor=0.01"} <= options["messages"]
    assert "fillfactor=50" in options["leases"]
    assert "autovacuum_freeze_min_age=0" in options["events"]


def _insert(store: Store, table: sa.Table, row: dict[str, object]) -> None:
    with store.writing.begin() as connection:
        connection.execute(table.insert(), [row])


def _write(store: Store, statement: str) -> None:
    with store.writing.begin() as connection:
        connection.exec_driver_sql(statement)


def _rows(store: Store, table: sa.Table) -> list[tuple[object, ...]]:
    with store.read() as connection:
        return [tuple(row) for row in connection.execute(sa.select(table))]

"""``migrate``, ``replay`` and ``verify`` as a person calls them."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path

import pytest

from app.artifacts import open_blobs
from app.cli.first_files import write_first_files
from app.config import Config, load
from app.store import migrate
from app.store.engine import open_store
from tests.commands import laufzettel
from tests.histories import History


@pytest.fixture
def database(tmp_path: Path) -> Path:
    """The place of a database that is not there yet, beside a configuration."""
    write_first_files(tmp_path, profile="standard-webhooks", destination="http://127.0.0.1:1/")
    config = load(tmp_path / "laufzettel.toml", {})
    assert isinstance(config, Config)
    assert config.installation.database_path is not None
    return config.installation.database_path


@pytest.fixture
def history(database: Path) -> Path:
    """A database with a history without artifacts."""
    store = open_store(f"sqlite:///{database}")
    migrate.upgrade(store)
    with History(store, seed=2) as history:
        history.report("F-1", 1)
        history.report("F-2", 1)
    store.close()
    return database


@pytest.mark.req("F5")
def test_migrate_shows_then_does_then_has_nothing_to_do(tmp_path: Path, database: Path) -> None:
    shown = laufzettel("migrate", "--dry-run", folder=tmp_path)
    assert shown.returncode == 0, shown.stderr
    assert "CREATE TABLE events" in shown.stdout

    done = laufzettel("migrate", "--json", folder=tmp_path)
    said = json.loads(done.stdout)
    assert (said["before"], said["after"], said["copy"]) == ("", migrate.newest(), None)
    assert database.exists()

    assert laufzettel("migrate", "--dry-run", folder=tmp_path).stdout == "nothing to do\n"


@pytest.mark.req("F3", "F5")
def test_replay_names_what_differs_and_mends_it_when_asked(tmp_path: Path, history: Path) -> None:
    equal = laufzettel("replay", folder=tmp_path)
    assert (equal.returncode, equal.stderr) == (0, "")
    assert "no differences" in equal.stdout

    _change(history, "UPDATE files SET name = 'geheim', state = 'completed'")
    differs = laufzettel("replay", folder=tmp_path)
    assert differs.returncode == 1
    assert "files.state" in differs.stdout
    assert "live completed, by the log " in differs.stdout
    assert "geheim" not in differs.stdout

    swapped = laufzettel("replay", "--swap", "--json", folder=tmp_path)
    assert swapped.returncode == 0, swapped.stderr
    assert json.loads(swapped.stdout)["swapped"] == 2
    said = json.loads(laufzettel("replay", "--json", folder=tmp_path).stdout)
    assert said["equal"] is True
    assert said["events"] == 2


@pytest.mark.req("B4", "F5")
def test_verify_names_the_place_of_a_change(tmp_path: Path, history: Path) -> None:
    sound = laufzettel("verify", "--json", folder=tmp_path)
    assert sound.returncode == 0, sound.stdout + sound.stderr
    said = json.loads(sound.stdout)
    assert said["sound"] is True
    assert said["head"]["position"] == said["chain"]["checked"]

    _change(
        history,
        "DROP TRIGGER events_no_update",
        "UPDATE events SET type = 'FileHeld' WHERE id = (SELECT event FROM positions"
        " WHERE position = 2)",
    )
    changed = laufzettel("verify", folder=tmp_path)
    assert changed.returncode == 1
    assert "position 2: stream, revision or type are not those of the event" in changed.stdout
    assert changed.stdout.endswith("1 fault\n")


@pytest.mark.req("D4", "F5")
def test_verify_reads_the_artifacts(tmp_path: Path, database: Path) -> None:
    store = open_store(f"sqlite:///{database}")
    migrate.upgrade(store)
    with History(store) as history:
        history.report("F-1", 1)
        history.drain()
    store.close()
    open_blobs(f"file:{tmp_path}/var/artifacts")
    found = laufzettel("verify", folder=tmp_path)
    assert found.returncode == 1
    assert "is missing" in found.stdout


def test_a_store_that_is_not_there_is_not_made(tmp_path: Path, database: Path) -> None:
    for command in ("replay", "verify"):
        refused = laufzettel(command, folder=tmp_path)
        assert refused.returncode == 2
        assert "laufzettel migrate" in refused.stderr
        assert not database.exists()


def test_a_store_in_use_is_left_alone(tmp_path: Path, history: Path) -> None:
    store = open_store(f"sqlite:///{history}")
    refused = laufzettel("verify", folder=tmp_path)
    store.close()
    assert refused.returncode == 1
    assert "in use by another process → stop `laufzettel run` first" in refused.stderr


def test_an_older_or_newer_schema_is_refused(tmp_path: Path, history: Path) -> None:
    _change(history, "UPDATE alembic_version SET version_num = '9999'")
    _change(history, "UPDATE reach SET oldest = '9999'")
    for command in ("migrate", "verify", "replay"):
        refused = laufzettel(command, folder=tmp_path)
        assert refused.returncode == 2
        assert "of version 9999" in refused.stderr


def _change(database: Path, *statements: str) -> None:
    connection = sqlite3.connect(database)
    with connection:
        for statement in statements:
            connection.execute(statement)
    connection.close()

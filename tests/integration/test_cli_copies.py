"""``backup``, ``restore``, ``move`` as a person calls them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from app.cli.first_files import write_first_files
from app.store import installation, migrate
from app.store.engine import open_store
from app.store.installation import Identity
from tests.commands import laufzettel
from tests.histories import KEY, History


@pytest.mark.req("F5", "F9")
def test_a_backup_is_restored_and_moved_by_three_commands(tmp_path: Path) -> None:
    write_first_files(tmp_path, profile="standard-webhooks", destination="http://127.0.0.1:1/")
    database = tmp_path / "var" / "laufzettel.db"
    store = open_store(f"sqlite:///{database}")
    migrate.upgrade(store)
    with store.writing.begin() as connection:
        installation.create(connection, Identity("inst", KEY, 1), 1)
    with History(store) as history:
        history.report("F-1", 1)
    store.close()

    made = laufzettel("backup", "b.tar", folder=tmp_path)
    assert made.returncode == 0, made.stderr
    assert "without artifacts" in made.stdout
    assert laufzettel("backup", "b.tar", folder=tmp_path).returncode == 2
    assert "not empty" in laufzettel("restore", "b.tar", folder=tmp_path).stderr

    database.rename(tmp_path / "old.db")
    done = laufzettel("restore", "b.tar", "--json", folder=tmp_path)
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout)
    assert (said["incarnation"], said["not_configured"]) == (2, ["s"])
    assert set(said["ask_again"]) == {"inbox", "s"}

    moved = laufzettel("move", "--to", f"sqlite:///{tmp_path}/new.db", folder=tmp_path)
    assert moved.returncode == 0, moved.stderr
    (tmp_path / "new.db").replace(database)
    for command in ("replay", "sweep"):
        assert laufzettel(command, folder=tmp_path).returncode == 0

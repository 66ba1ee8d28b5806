"""Backup, restore and move: one consistent state, out of either kind of database into either."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from app.artifacts import ERASURES, Blobs, open_blobs
from app.compose import copies
from app.compose.copies import BackupError, Mark
from app.ledger.sequencing import Sequencing
from app.replay import replay
from app.store import copying, installation, migrate
from app.store import tables as t
from app.store.engine import Store, open_store
from app.store.errors import SchemaError, StoreError
from app.store.installation import Identity
from app.store.reading import erasures
from app.verify import verify_chain, verify_parts
from domain.ids import derive
from tests.histories import KEY, History
from tests.programs import newer
from tests.stores import SIDES, Postgres

MARK = Mark(1_800_000_000_000, bytes(16))
F1 = derive(KEY, "fil", "s", "F-1")


@pytest.fixture
def blobs(tmp_path: Path) -> Blobs:
    return open_blobs(f"file:{tmp_path}/artifacts")


@pytest.fixture(params=SIDES)
def target(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    """An empty store on each backend, to bring something into."""
    url = f"sqlite:///{tmp_path}/target.db"
    if request.param == "postgresql":
        server: Postgres = request.getfixturevalue("postgres")
        url = server.fresh()
    opened = open_store(url)
    migrate.upgrade(opened)
    yield opened
    opened.close()


def lived(store: Store, steps: int = 60) -> None:
    """Give the store a past, all of it in its place on the log."""
    with store.writing.begin() as connection:
        installation.create(connection, Identity("inst", KEY, 1), 1)
    with History(store, seed=3) as history:
        history.report("F-1", 1)
        history.run(steps)
    if store.backend == "postgresql":
        placed(store)


def placed(store: Store) -> None:
    sequencing = Sequencing(store, "test", History(store).clock)
    for _ in range(3):
        term = sequencing._lead()
        assert term is not None
        sequencing._sequence(term)
    sequencing._resign()


def content(store: Store) -> dict[str, list[Any]]:
    with store.read() as connection:
        return {
            name: sorted(map(repr, connection.execute(sa.select(copying.BY_NAME[name]))))
            for name in copying.NAMES
        }


def assert_sound(store: Store) -> None:
    assert replay(store).differences == []
    assert verify_chain(store).faults == []
    assert verify_parts(store).faults == []


@pytest.mark.req("F1", "F9")
def test_a_moved_store_has_the_same_rows_and_goes_on(store: Store, target: Store) -> None:
    lived(store)
    copies.move(store, target)
    assert content(target) == content(store)
    assert_sound(target)
    with History(target, seed=4) as history:
        history._told = 1000
        history.run(20)
    if target.backend == "postgresql":
        placed(target)
    assert_sound(target)


@pytest.mark.req("F9")
def test_a_restored_store_is_the_same_but_for_a_new_incarnation(
    store: Store, target: Store, blobs: Blobs, tmp_path: Path
) -> None:
    lived(store)
    file = tmp_path / "backup.tar"
    copies.backup(store, file, now_ms=1)
    assert file.stat().st_mode & 0o777 == 0o600
    done = copies.restore(target, blobs, file, mark=MARK)
    copies.end(target)
    before, after = content(store), content(target)
    changed = {name for name in before if before[name] != after[name]}
    assert changed == {"installation", "events", "positions"}
    assert len(after["events"]) == len(before["events"]) + 1
    assert set(before["positions"]) < set(after["positions"])
    assert done.incarnation == 2
    assert done.position == len(before["positions"])
    assert_sound(target)


@pytest.mark.req("F9", "D4")
def test_a_backup_with_artifacts_brings_their_bytes(store: Store, tmp_path: Path) -> None:
    lived(store, 0)
    with History(store, seed=5) as history:
        history.drain()
    old, new = open_blobs(f"file:{tmp_path}/old"), open_blobs(f"file:{tmp_path}/new")
    digest = hashlib.sha256(b"bytes").hexdigest()
    (tmp_path / "b").write_bytes(b"bytes")
    old.put_file(tmp_path / "b", digest)
    change = t.artifacts.update().values(sha256=digest)
    with store.writing.begin() as connection:
        connection.execute(change)
    copies.backup(store, tmp_path / "b.tar", now_ms=1, blobs=old)
    fresh = open_store(f"sqlite:///{tmp_path}/fresh.db")
    migrate.upgrade(fresh)
    done = copies.restore(fresh, new, tmp_path / "b.tar", mark=MARK)
    fresh.close()
    assert (done.artifacts, done.missing) == (1, [])
    assert new.exists(digest)


@pytest.mark.req("B9", "F9")
def test_a_restore_erases_again_what_was_erased_since(
    target: Store, blobs: Blobs, tmp_path: Path
) -> None:
    origin = open_store(f"sqlite:///{tmp_path}/origin.db")
    migrate.upgrade(origin)
    lived(origin, 0)
    copies.backup(origin, tmp_path / "b.tar", now_ms=1)
    with History(origin) as history:
        history.erase("F-1")
    with origin.read() as connection:
        last = erasures.last(connection, F1)
    assert last is not None
    blobs.notes.put(ERASURES, *erasures.note(F1, last.recorded.event.at_ms))
    origin.close()

    copies.restore(target, blobs, tmp_path / "b.tar", mark=MARK)
    assert "Rechnung" in repr(content(target)["files"])
    with History(target) as history:
        assert copies.erase_again(target, history.ledger, blobs) == [F1]
        assert copies.erase_again(target, history.ledger, blobs) == []
    assert "Rechnung" not in repr(content(target)["files"])
    if target.backend == "postgresql":
        placed(target)
    assert_sound(target)


@pytest.mark.req("F9")
def test_what_is_no_whole_backup_changes_nothing(
    store: Store, blobs: Blobs, tmp_path: Path
) -> None:
    origin = open_store(f"sqlite:///{tmp_path}/origin.db")
    migrate.upgrade(origin)
    lived(origin, 20)
    file = tmp_path / "b.tar"
    copies.backup(origin, file, now_ms=1)
    origin.close()
    whole = file.read_bytes()
    broken = [b"", whole[: len(whole) // 2], whole.replace(b'"made_ms": 1', b'"made_ms": 2')]
    for data in broken:
        file.write_bytes(data)
        with pytest.raises(BackupError):
            copies.restore(store, blobs, file, mark=MARK)
        with store.read() as connection:
            assert copying.is_empty(connection)


@pytest.mark.req("F9", "F10")
def test_a_backup_goes_into_the_next_schema_where_that_reaches_back(
    store: Store, target: Store, blobs: Blobs, tmp_path: Path
) -> None:
    lived(store, 20)
    copies.backup(store, tmp_path / "b.tar", now_ms=1)
    before = content(store)
    with newer(tmp_path, before=migrate.newest(), oldest="9001"):
        migrate.upgrade(target)
        with pytest.raises(SchemaError, match="does not go into this program's, 9001"):
            copies.restore(target, blobs, tmp_path / "b.tar", mark=MARK)
    with newer(tmp_path, before=migrate.newest(), oldest=migrate.newest()):
        copies.restore(target, blobs, tmp_path / "b.tar", mark=MARK)
    assert content(target)["jobs"] == before["jobs"] != []


@pytest.mark.req("F9")
def test_a_store_that_is_in_use_is_not_written_over(
    store: Store, blobs: Blobs, tmp_path: Path
) -> None:
    lived(store, 5)
    copies.backup(store, tmp_path / "b.tar", now_ms=1)
    before = content(store)
    with pytest.raises(StoreError, match="not empty"):
        copies.restore(store, blobs, tmp_path / "b.tar", mark=MARK)
    assert content(store) == before

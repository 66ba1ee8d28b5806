"""Restore, move, erase and sweep killed at their points: given again, each ends what it began."""

from __future__ import annotations

import hashlib
import shutil
import sqlite3
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import pytest

from app.artifacts import CHECKPOINTS, ERASURES, open_blobs
from tests.commands import Ended, laufzettel
from tests.crash.harness import assert_store_is_sound, world
from tests.crash.places import Embedded
from tests.crash.zygotes import KILLED, SECRET, Zygote

ERASED = "Erased-4711"
RESTORE = (
    "restore.commit.before",
    "restore.commit.after",
    "blobs.put.after:2",
    "ledger.commit.after",
    "restore.end.before",
    "restore.end.after",
)
MOVE = ("move.commit.before", "move.commit.after")
ERASE = ("ledger.commit.before", "ledger.commit.after", "notes.put.before", "notes.put.after")
SWEEP = ("notes.put.before", "notes.put.after", "blobs.delete.before", "blobs.delete.after")
LOOSE = hashlib.sha256(b"nobody wants it").hexdigest()


@dataclass(frozen=True)
class Home:
    """The folder of an installation that nothing runs on."""

    folder: Path

    def run(self, *words: str, point: str = "") -> Ended:
        armed = {"LAUFZETTEL_SCRATCH": str(self.folder), "LAUFZETTEL_POINT": point}
        return laufzettel(*words, folder=self.folder, SECRET=SECRET, **(armed if point else {}))

    def killed(self, *words: str, point: str) -> None:
        ended = self.run(*words, point=point)
        assert ended.returncode == KILLED, (ended.stdout, ended.stderr)

    def done(self, *words: str) -> str:
        ended = self.run(*words)
        assert ended.returncode == 0, (ended.stdout, ended.stderr)
        return ended.stdout

    def rows(self, query: str, store: str = "store.db") -> list[tuple[object, ...]]:
        with closing(sqlite3.connect(self.folder / store)) as connection, connection:
            return connection.execute(query).fetchall()

    def notes(self, kind: str) -> list[str]:
        return [name for name, _ in self.blobs.notes.all(kind)]

    @property
    def blobs(self):  # type: ignore[no-untyped-def] # noqa: ANN201
        return open_blobs(f"file:{self.folder}/artifacts")

    def digests(self) -> set[str]:
        return {blob.sha256 for blob in self.blobs.list()}

    def erase(self) -> tuple[str, ...]:
        """By its id: an erased file has no name any more."""
        ((stream,),) = self.rows("SELECT stream FROM files WHERE file_id LIKE 'Erased-%'")
        return ("erase", str(stream), "--reason", "asked for", "--operator", "ada", "--yes")

    def assert_erased(self) -> None:
        """Nothing of it is left but the one message to those who had it, which names it."""
        ((state, body),) = self.rows(
            "SELECT state, data FROM messages JOIN bodies ON bodies.message = messages.id"
            " WHERE type = 'file.erased'"
        )
        assert state == "pending"
        assert isinstance(body, bytes)
        data = b"".join(p.read_bytes() for p in self.folder.glob("store.db*"))
        assert ERASED.encode() not in data.replace(body, b"")


@pytest.fixture(scope="module")
def lived(tmp_path_factory: pytest.TempPathFactory, zygote: Zygote) -> Path:
    """Files came through it, it was copied with its artifacts, and now it rests."""
    folder = tmp_path_factory.mktemp("lived")
    told = 'types = ["file.version.completed", "file.erased"]'
    with world(folder, zygote, destination=told) as made:
        made.send(made.version("F-0"), made.version(ERASED))
        made.drain()
        Home(folder).done("backup", "old.tar", "--artifacts")
    (folder / "run.log").unlink()
    return folder


@pytest.fixture
def home(lived: Path, tmp_path: Path) -> Home:
    shutil.copytree(lived, tmp_path / "home")
    return Home(tmp_path / "home")


@pytest.mark.req("F9", "B9", "F11")
@pytest.mark.parametrize("point", RESTORE)
def test_a_restore_that_was_killed_is_ended_by_the_same_command(home: Home, point: str) -> None:
    before = home.digests()
    home.done(*home.erase())
    lose(home)
    home.killed("restore", "old.tar", point=point)
    if point not in {"restore.commit.before", "restore.end.after"}:
        # Until then nobody may serve what was erased.
        refused = home.run("run")
        assert (refused.returncode, "restore FILE" in refused.stderr) == (2, True), refused.stderr
    again = home.run("restore", "old.tar")
    is_over = point == "restore.end.after"
    assert (again.returncode, "not empty" in again.stderr) == (int(is_over), is_over)
    home.assert_erased()
    (incarnation,) = home.rows("SELECT incarnation FROM installation")
    assert incarnation == (2,)
    assert home.rows("SELECT count(*) FROM events WHERE type = 'LogRestored'") == [(1,)]
    home.done("sweep")
    assert home.digests() < before
    assert_store_is_sound(Embedded(home.folder))


def lose(home: Home) -> None:
    """The database, and all artifacts; what is kept beside them is not lost."""
    for path in home.folder.glob("store.db*"):
        path.unlink()
    for blob in list(home.blobs.list()):
        home.blobs.delete(blob.sha256)


@pytest.mark.req("F9")
def test_another_backup_does_not_go_on_with_a_restore_that_was_killed(home: Home) -> None:
    home.done("backup", "new.tar")
    lose(home)
    home.killed("restore", "old.tar", point="restore.commit.after")
    other = home.run("restore", "new.tar")
    assert (other.returncode, "not empty" in other.stderr) == (1, True)
    home.done("restore", "old.tar")


@pytest.mark.req("F9", "F11")
@pytest.mark.parametrize("point", MOVE)
def test_a_move_that_was_killed_is_whole_or_not_there(home: Home, point: str) -> None:
    target = f"sqlite:///{home.folder}/new.db"
    home.killed("move", "--to", target, point=point)
    is_there = point == "move.commit.after"
    found = home.rows("SELECT count(*) FROM events", "new.db")
    assert found == (home.rows("SELECT count(*) FROM events") if is_there else [(0,)])
    again = home.run("move", "--to", target)
    assert (again.returncode, "not empty" in again.stderr) == (int(is_there), is_there)
    config = home.folder / "laufzettel.toml"
    config.write_text(config.read_text().replace("sqlite:///store.db", target))
    home.done("verify")
    home.done("replay")


@pytest.mark.req("B9", "F11")
@pytest.mark.parametrize("point", ERASE)
def test_an_erasure_that_was_killed_is_ended_by_the_same_command(home: Home, point: str) -> None:
    erase = home.erase()
    home.killed(*erase, point=point)
    home.done(*erase)
    home.done("sweep")
    home.assert_erased()
    (stream,) = home.notes(ERASURES)
    assert stream.startswith("fil_")
    assert len(home.digests()) == 2
    assert_store_is_sound(Embedded(home.folder))


@pytest.mark.req("D4", "F11")
@pytest.mark.parametrize("point", SWEEP)
def test_a_sweep_that_was_killed_is_ended_by_the_next(home: Home, point: str) -> None:
    wanted = home.digests()
    (home.folder / "loose").write_bytes(b"nobody wants it")
    home.blobs.put_file(home.folder / "loose", LOOSE)
    home.done("sweep")
    shutil.rmtree(home.folder / "artifacts" / CHECKPOINTS)
    home.rows("UPDATE condemned SET due_ms = 0")
    home.killed("sweep", point=point)
    home.done("sweep")
    assert home.digests() == wanted
    assert home.rows("SELECT * FROM condemned") == []
    assert len(home.notes(CHECKPOINTS)) == 1
    assert_store_is_sound(Embedded(home.folder))

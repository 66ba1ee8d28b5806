"""The schema of the next release on a store that is in use, and this program on its tables."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import sqlalchemy as sa

from app.compose import Process, copies
from app.config import Config
from app.store import migrate
from app.store import tables as t
from app.store.engine import Store, open_store
from app.store.errors import SchemaError, StoreUnavailableError
from app.verify import verify_chain
from migrations import Index
from tests import runtimes as r
from tests.programs import newer
from tests.servers import Server, answering, serving
from tests.stores import Postgres

PRESENT = migrate.newest()


def configured(folder: Path, source: Server, erp: Server) -> Config:
    (folder / "var").mkdir(exist_ok=True)
    return r.configured(
        folder,
        source=source.host,
        destination=erp.url("/hooks"),
        recipe='transforms = [{ name = "sum", use = "checksum" }]',
    )


class Traffic:
    """Files one after the other, for as long as it goes on; any refusal is an error here."""

    def __init__(self, process: Process, url: str) -> None:
        self.process, self.url = process, url
        self.files: list[str] = []
        self.closing = threading.Event()
        self.failed: list[Exception] = []
        self.thread = threading.Thread(target=self.run)

    def run(self) -> None:
        try:
            while not self.closing.is_set():
                name = f"F-{len(self.files)}"
                r.announce(self.process, self.url, file_id=name)
                self.files.append(name)
        except Exception as error:  # noqa: BLE001 (it is raised where it is looked at)
            self.failed.append(error)

    def await_more(self) -> None:
        """Wait until files that come from now on are through."""
        last = len(self.files) + 3
        r.until(lambda: self.failed or len(self.files) > last, within_s=60)
        assert self.failed == []
        r.until(lambda: all(is_told(self.process, name) for name in self.files[:last]), within_s=60)

    def end(self) -> None:
        self.closing.set()
        self.thread.join()
        assert self.failed == []


def is_told(process: Process, name: str) -> bool:
    messages = r.file_of(process, name).messages.values()
    return [message.phase for message in messages] == ["delivered"]


def columns(store: Store, table: str) -> set[str]:
    with store.read() as connection:
        return {column["name"] for column in sa.inspect(connection).get_columns(table)}


@pytest.mark.req("F10")
def test_the_schema_is_brought_up_while_files_go_through(
    tmp_path: Path, postgres: Postgres, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(r, "DATABASE", postgres.fresh())
    with serving(answering(200, b"x")) as source, serving(answering(204)) as erp:
        config = configured(tmp_path, source, erp)
        store = open_store(r.DATABASE)
        with r.running(config) as process:
            traffic = Traffic(process, source.url("/f"))
            traffic.thread.start()
            traffic.await_more()
            # Somebody's long question holds a table that the step wants to change.
            with store.read() as question:
                question.exec_driver_sql("LOCK TABLE files IN ACCESS SHARE MODE")
                with (
                    newer(tmp_path, before=PRESENT, oldest=PRESENT),
                    ThreadPoolExecutor(1) as beside,
                ):
                    upgrade = beside.submit(migrate.upgrade, store)
                    traffic.await_more()
                    assert not upgrade.done()
                    question.rollback()
                    assert upgrade.result(60) == migrate.Upgrade(PRESENT, "9001", None)
            assert {"weight"} <= columns(store, "jobs")
            traffic.await_more()
            traffic.end()
            r.until(lambda: all(is_told(process, name) for name in traffic.files), within_s=120)

        # The program before may be started on the new tables again, as after a roll-back.
        with r.running(config) as process:
            r.announce(process, source.url("/f"), file_id="after")
            r.until(lambda: is_told(process, "after"), within_s=60)
        assert verify_chain(store).faults == []
        store.close()
    ids = [request.header("webhook-id") for request in erp.requests]
    assert len(ids) == len(set(ids)) == len(traffic.files) + 1


@pytest.mark.req("F10")
def test_a_step_gives_up_in_the_end_and_leaves_what_was_there(
    postgres: Postgres, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(migrate, "_TRIES", 2)
    monkeypatch.setattr(migrate, "_REST_S", 0.01)
    monkeypatch.setattr(migrate, "_LOCK_TIMEOUT_MS", 50)
    store = open_store(postgres.fresh())
    with newer(tmp_path, before=PRESENT, oldest=PRESENT):
        with store.read() as question:
            question.exec_driver_sql("LOCK TABLE files IN ACCESS SHARE MODE")
            with pytest.raises(StoreUnavailableError, match="lock timeout"):
                migrate.upgrade(store)
        assert migrate.current(store) == PRESENT
        assert "weight" not in columns(store, "jobs")
        assert migrate.upgrade(store).after == "9001"
    store.close()


@pytest.mark.req("F10")
def test_an_index_that_was_left_half_built_is_built_anew(
    postgres: Postgres, tmp_path: Path
) -> None:
    store = open_store(postgres.fresh(template="template1"))
    migrate.upgrade(store)
    index = migrations_index()
    with store.writing.connect() as plain:
        connection = plain.execution_options(isolation_level="AUTOCOMMIT")
        connection.exec_driver_sql(f"DROP INDEX {index.name}")
        connection.execute(t.rates.insert(), [{"scope": s, "began": ""} for s in ("a", "b")])
        with pytest.raises(sa.exc.IntegrityError):
            connection.exec_driver_sql(
                f"CREATE UNIQUE INDEX CONCURRENTLY {index.name} ON rates (began)"
            )
        assert connection.execute(migrate._HALF_BUILT, {"name": index.name}).first()
    migrate._build_beside(store, (index,))
    with store.read() as connection:
        found = {each["name"] for each in sa.inspect(connection).get_indexes(index.table)}
        assert not connection.execute(migrate._HALF_BUILT, {"name": index.name}).first()
    assert index.name in found
    store.close()


def migrations_index() -> Index:
    return next(index for step in migrate.steps() for index in step.indexes)


def test_a_newer_schema_that_reaches_back_is_worked_on_and_not_copied(
    store: Store, tmp_path: Path
) -> None:
    with newer(tmp_path, before=PRESENT, oldest=PRESENT):
        migrate.upgrade(store)
    migrate.check(store)
    assert migrate.pending(store) == ()
    assert migrate.upgrade(store).after == "9001"
    with pytest.raises(SchemaError, match="do this with the newer program"):
        copies.backup(store, tmp_path / "b.tar", now_ms=0)
    with pytest.raises(SchemaError, match="do this with the newer program"):
        copies.move(store, store)
    assert not list(tmp_path.glob("b.tar*"))


def test_a_newer_schema_that_does_not_reach_back_is_left_alone(
    store: Store, tmp_path: Path
) -> None:
    with newer(tmp_path, before=PRESENT, oldest="9001"):
        migrate.upgrade(store)
    for refused in (migrate.check, migrate.pending, migrate.upgrade, migrate.check_same):
        with pytest.raises(SchemaError, match=f"of version 9001, this program knows {PRESENT}"):
            refused(store)

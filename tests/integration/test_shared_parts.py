"""A process on PostgreSQL with a broker or a pooler, both as they are on bad days too."""

from __future__ import annotations

from pathlib import Path

import pytest
import sqlalchemy as sa

from app.compose import Process, Refused, compose_web
from app.config import Config
from app.store import migrate
from app.store.engine import open_store
from app.verify import verify_chain
from tests import runtimes as r
from tests.brokers import valkey_server
from tests.poolers import pooled
from tests.servers import answering, closed_port, serving
from tests.stores import Postgres

FILES = 12


def flow(config: Config, source_url: str, *, files: int = FILES, first: int = 0) -> None:
    """Let one process carry so many files to their end."""
    with r.running(config) as process:
        _told(process, source_url, range(first, first + files))


def _told(process: Process, source_url: str, numbers: range) -> None:
    ledger = process.base.ledger
    for number in numbers:
        r.submit(ledger, r.version_accepted(ledger, source_url, file_id=f"F-{number}"))
    r.until(lambda: all(_is_told(process, number) for number in numbers), within_s=60)


def _is_told(process: Process, number: int) -> bool:
    messages = r.file_of(process, f"F-{number}").messages.values()
    return [message.phase for message in messages] == ["delivered"]


@pytest.mark.req("A13")
@pytest.mark.req("F1")
def test_with_a_broker_that_is_down_all_work_is_done_all_the_same(
    tmp_path: Path, postgres: Postgres, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(r, "DATABASE", postgres.fresh())
    with serving(answering(200, b"x")) as source, serving(answering(204)) as erp:
        config = r.configured(
            tmp_path,
            source=source.host,
            destination=erp.url("/hooks"),
            recipe="transforms = []",
            installation=f'broker = "redis://127.0.0.1:{closed_port()}/1"',
        )
        flow(config, source.url("/f"))
    assert len(r.told(erp)) == FILES


@pytest.mark.req("F1")
def test_a_broker_that_is_emptied_and_restarted_loses_and_doubles_nothing(
    tmp_path: Path, postgres: Postgres, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(r, "DATABASE", postgres.fresh())
    (tmp_path / "valkey").mkdir()
    with (
        valkey_server(tmp_path / "valkey") as valkey,
        serving(answering(200, b"x")) as source,
        serving(answering(204)) as erp,
    ):
        config = r.configured(
            tmp_path,
            source=source.host,
            destination=erp.url("/hooks"),
            recipe="transforms = []",
            installation=f'broker = "{valkey.url}"',
        )
        with r.running(config) as first, r.running(config) as second:
            _told(first, source.url("/f"), range(FILES))
            valkey.empty()
            _told(second, source.url("/f"), range(FILES, 2 * FILES))
            valkey.stop()
            _told(first, source.url("/f"), range(2 * FILES, 3 * FILES))
            valkey.start()
            _told(second, source.url("/f"), range(3 * FILES, 4 * FILES))
    ids = [request.header("webhook-id") for request in erp.requests]
    assert len(ids) == len(set(ids)) == 4 * FILES


@pytest.mark.req("F1")
def test_behind_a_pooler_in_transaction_mode_all_goes_its_way(
    tmp_path: Path, postgres: Postgres, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = postgres.fresh()
    with (
        pooled(url) as through,
        serving(answering(200, b"x")) as source,
        serving(answering(204)) as erp,
    ):
        monkeypatch.setattr(r, "DATABASE", through)
        config = r.configured(
            tmp_path,
            source=source.host,
            destination=erp.url("/hooks"),
            recipe="transforms = []",
            installation=f'database_direct = "{url}"',
        )
        flow(config, source.url("/f"), files=40)
    store = open_store(url)
    assert verify_chain(store).faults == []
    store.close()
    assert len(r.told(erp)) == 40


def test_a_process_on_an_older_schema_is_refused_and_told_to_migrate(
    tmp_path: Path, postgres: Postgres, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(r, "DATABASE", postgres.fresh(template="template0"))
    config = r.configured(tmp_path, source="127.0.0.1:1", destination="http://127.0.0.1:1/")
    refused = compose_web(config)
    assert isinstance(refused, Refused)
    assert "laufzettel migrate" in str(refused.problems[0])


def test_the_server_ends_a_session_that_forgets_an_open_transaction(postgres: Postgres) -> None:
    url = postgres.fresh(template="template0")
    store = open_store(url)
    migrate.upgrade(store)
    store.close()
    later = open_store(url)
    with later.read() as connection:
        assert limit_of(connection) == "1min"
    later.close()


def limit_of(connection: sa.Connection) -> object:
    return connection.exec_driver_sql("SHOW idle_in_transaction_session_timeout").scalar()

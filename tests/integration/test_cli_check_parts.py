"""``check`` that asks the parts themselves, and the store that a process works on."""

from __future__ import annotations

from pathlib import Path

import pytest

from app.config import Config
from tests.brokers import valkey_server
from tests.commands import document, laufzettel
from tests.runtimes import announce, configured, pause, running

WELL = {"source": "127.0.0.1:9", "destination": "http://127.0.0.1:9/hooks"}
ENVIRON = {"SECRET": "whsec_" + "a2tr" * 11}


def check(folder: Path, *told: str) -> tuple[int, str, str]:
    ended = laufzettel("check", *told, folder=folder, **ENVIRON)
    return ended.returncode, ended.stdout, ended.stderr


@pytest.mark.req("F1")
@pytest.mark.parametrize(
    "key, value",
    [
        ("database", "postgresql://x@127.0.0.1:1/db"),
        ("broker", "redis://127.0.0.1:1/0"),
        ("broker", "amqp://127.0.0.1:1/%2F"),
        ("artifacts", "s3://bucket?endpoint=http://127.0.0.1:1"),
    ],
)
def test_a_part_that_does_not_answer_is_named_only_when_asked(
    tmp_path: Path, key: str, value: str
) -> None:
    (tmp_path / "laufzettel.toml").write_text(f'[laufzettel]\n{key} = "{value}"\n')
    assert check(tmp_path)[0] == 0
    status, _, told = check(tmp_path, "--connect")
    assert status == 1
    assert told.startswith(f"error: laufzettel.toml: laufzettel.{key}: ")
    assert "Traceback" not in told


@pytest.mark.req("F1")
def test_a_name_that_leads_nowhere_is_told(tmp_path: Path) -> None:
    configured(tmp_path, source="127.0.0.1:9", destination="https://erp.invalid/hooks")
    status, _, told = check(tmp_path, "--connect")
    assert status == 1
    assert "destinations.erp.url: the name erp.invalid leads to no address" in told


@pytest.mark.req("F1")
def test_parts_that_answer_pass(tmp_path: Path) -> None:
    with valkey_server(tmp_path) as broker:
        configured(tmp_path, **WELL, installation=f'broker = "{broker.url}"')
        assert check(tmp_path, "--connect")[0] == 0


@pytest.mark.req("C8")
def test_what_a_start_would_change_or_orphan_is_told_beside_the_process_that_works(
    tmp_path: Path,
) -> None:
    config = configured(tmp_path, **WELL)
    assert isinstance(config, Config)
    with running(config) as process:
        pause(process, "all")
        announce(process, "http://127.0.0.1:9/a.pdf")
        same = document("check", "--against-running", folder=tmp_path, **ENVIRON)
        assert same["changed"] == []
        renamed = (tmp_path / "laufzettel.toml").read_text().replace("contracts", "contract")
        (tmp_path / "laufzettel.toml").write_text(renamed + '\n[alerts]\nsilent_source = "2h"\n')
        status, told, errors = check(tmp_path, "--against-running")
    assert status == 1
    assert "changed      alerts.silent_source" in told
    assert "sources.contracts: is gone, but 1 unfinished job" in errors
    assert 'was = ["contracts"]' in errors


def test_where_nothing_has_run_there_is_nothing_to_compare_with(tmp_path: Path) -> None:
    configured(tmp_path, **WELL)
    status, _, told = check(tmp_path, "--against-running")
    assert status == 1
    assert "nothing has run there yet" in told

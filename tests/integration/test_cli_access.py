"""Commands reach an installation: the store itself, the process that has it, another machine's."""

from __future__ import annotations

import json
import os
import signal
import stat
import subprocess
import sys
from pathlib import Path

import httpx
import pytest

from tests import runtimes as r
from tests.commands import START, document, environment, laufzettel, started


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    r.configured(
        tmp_path,
        source="127.0.0.1:9",
        destination="http://127.0.0.1:9/",
        more="",
    )
    path = tmp_path / "laufzettel.toml"
    path.write_text(
        path.read_text().replace("[laufzettel]", '[laufzettel]\nlisten = "127.0.0.1:0"')
    )
    (tmp_path / ".env").write_text(f"SECRET={r.SECRET}\n")
    (tmp_path / ".env").chmod(0o600)
    return tmp_path


def created(folder: Path, *more: str, **environ: str) -> str:
    """The token that ``tokens create`` shows."""
    told = ("tokens", "create", "anna", "--reason", "a test", *more)
    token: str = document(*told, folder=folder, **environ)["token"]
    return token


@pytest.mark.req("F5")
def test_before_the_first_start_a_command_says_what_makes_a_store(folder: Path) -> None:
    ended = laufzettel("tokens", "list", folder=folder)
    assert ended.returncode == 2
    assert "there is no store there yet → make one with: laufzettel run" in ended.stderr


@pytest.mark.req("F7")
@pytest.mark.req("F12")
def test_one_token_opens_the_store_its_process_and_the_address(folder: Path) -> None:
    with started(folder):
        near = json.loads((folder / "store.db.process").read_text())
        token = created(folder, "--role", "admin", "--operator", "x")
        far = document(
            "--url", near["url"], "tokens", "list", folder=folder, LAUFZETTEL_TOKEN=token
        )
        assert document("tokens", "list", folder=folder)["items"] == far["items"]
        (row,) = far["items"]
        assert (row["name"], row["role"], row["scope"]) == ("anna", "admin", [])
        mode = stat.S_IMODE((folder / "store.db.process").stat().st_mode)
        assert (mode, near["pid"] != os.getpid()) == (0o600, True)
        refused = laufzettel(
            "--url", near["url"], "tokens", "list", folder=folder, LAUFZETTEL_TOKEN="wrong"
        )
        assert refused.returncode == 2
        assert "LAUFZETTEL_TOKEN" in refused.stderr
    assert not (folder / "store.db.process").exists()
    listed = document("tokens", "list", folder=folder)["items"]
    assert [row["id"] for row in listed] == [row["id"]]
    assert token not in json.dumps(listed)


@pytest.mark.req("F7")
def test_the_local_token_ends_with_its_process(folder: Path) -> None:
    with started(folder):
        first = json.loads((folder / "store.db.process").read_text())
    with started(folder):
        second = json.loads((folder / "store.db.process").read_text())
        asked = f"{second['url']}/api/v1/tokens"
        statuses = [
            httpx.get(asked, headers={"authorization": f"Bearer {near['token']}"}).status_code
            for near in (first, second)
        ]
    assert statuses == [401, 200]


@pytest.mark.req("F7")
def test_a_revoked_token_opens_nothing_and_is_revoked_once(folder: Path) -> None:
    with started(folder):
        token = created(folder, "--role", "viewer", "--only", "source:contracts")
        (row,) = document("tokens", "list", folder=folder)["items"]
        order = ("tokens", "revoke", row["id"], "--reason", "it leaked")
        dry = document(*order, "--dry-run", folder=folder)
        assert dry["items"][0]["fate"] == "would be done"
        fates = [document(*order, folder=folder)["items"][0]["fate"] for _ in range(2)]
        assert fates == ["done", "done already"]
        url = json.loads((folder / "store.db.process").read_text())["url"]
        ended = laufzettel("--url", url, "tokens", "list", folder=folder, LAUFZETTEL_TOKEN=token)
        assert ended.returncode == 2
        unknown = laufzettel("tokens", "revoke", "tok_x", "--reason", "r", folder=folder)
        assert (unknown.returncode, "no such token" in unknown.stdout) == (1, True)


@pytest.mark.req("F2")
def test_an_order_without_a_reason_is_wrong_usage_where_nobody_can_be_asked(folder: Path) -> None:
    ended = laufzettel("tokens", "create", "anna", folder=folder)
    assert ended.returncode == 2
    assert "an order needs a reason → say why with --reason" in ended.stderr


def test_a_token_with_a_flaw_is_refused_in_words(folder: Path) -> None:
    with started(folder):
        told = ("tokens", "create", "erp", "--role", "receiver", "--reason", "r")
        ended = laufzettel(*told, folder=folder)
    assert ended.returncode == 2
    assert "error: a receiver is limited to one destination → " in ended.stderr


def test_the_url_of_nothing_says_so(folder: Path) -> None:
    told = ("--url", "http://127.0.0.1:9", "tokens", "list")
    assert laufzettel(*told, folder=folder).returncode == 2  # without a token
    ended = laufzettel(*told, folder=folder, LAUFZETTEL_TOKEN="x")
    assert ended.returncode == 1
    assert "http://127.0.0.1:9 cannot be reached" in ended.stderr
    named = laufzettel(*told, "--operator", "me", folder=folder, LAUFZETTEL_TOKEN="x")
    assert named.returncode == 2


@pytest.mark.req("F1")
@pytest.mark.parametrize("command", ["web", "worker"])
def test_a_sqlite_store_has_one_process(folder: Path, command: str) -> None:
    ended = laufzettel(command, folder=folder)
    assert ended.returncode == 2
    assert (
        f"there is no {command} beside it → start everything with: laufzettel run" in ended.stderr
    )


def test_a_second_run_and_a_taken_store_are_refused(folder: Path) -> None:
    with started(folder):
        ended = laufzettel("run", folder=folder)
        assert ended.returncode == 2
        assert "is in use by another process" in ended.stderr


@pytest.mark.req("F5")
def test_watching_prints_a_document_a_line_until_it_is_ended(folder: Path) -> None:
    with started(folder):
        watching = subprocess.Popen(
            [sys.executable, "-c", START, "status", "--json", "--watch"],
            cwd=folder,
            env=environment(),
            stdout=subprocess.PIPE,
            text=True,
        )
        assert watching.stdout is not None
        lines = [json.loads(watching.stdout.readline()) for _ in range(2)]
        watching.send_signal(signal.SIGINT)
        watching.communicate(timeout=60)
    assert [line["ok"] for line in lines] == [True, True]
    assert watching.returncode == 0


def test_a_receiver_says_the_address_that_its_destination_has(folder: Path) -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", START, "receive", "--port", "0"],
        cwd=folder,
        env=environment(),
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    greeting = process.stdout.readline()
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=60)
    address, _, rest = greeting.removeprefix("Receiving at ").partition(", ")
    assert address.endswith("/")
    assert not address.endswith("/hooks")
    assert "1 secret. " in rest

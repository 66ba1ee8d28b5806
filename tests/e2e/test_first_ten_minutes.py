"""The first ten minutes of a stranger, with the commands that ``init`` names, in real processes."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from app.cli import nearby
from app.config import Config, load
from tests.runtimes import until

PDF = Path(__file__).parents[1] / "cases/files/pdf-ok-2-pages.pdf"
ENVIRON = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}


def free_ports(count: int) -> list[str]:
    with ExitStack() as stack:
        probes = [stack.enter_context(socket.create_server(("127.0.0.1", 0))) for _ in range(count)]
        return [str(probe.getsockname()[1]) for probe in probes]


class Stranger:
    """Types commands in a folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.document = folder / "Rechnung 7.pdf"
        self.document.write_bytes(PDF.read_bytes())

    @property
    def config(self) -> Config:
        found = load(self.folder / "laufzettel.toml", {})
        assert isinstance(found, Config)
        return found

    def types(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "app.cli", *arguments],
            cwd=self.folder,
            env=ENVIRON,
            capture_output=True,
            text=True,
            timeout=90,
            check=False,
        )

    @contextmanager
    def leaves_running(self, *arguments: str) -> Iterator[Path]:
        """Run a command in another terminal; what it prints is in the file."""
        printed = self.folder / f"{arguments[0]}.out"
        with printed.open("ab") as out:
            process = subprocess.Popen(
                [sys.executable, "-m", "app.cli", *arguments],
                cwd=self.folder,
                env=ENVIRON,
                stdout=out,
                stderr=subprocess.STDOUT,
            )
        try:
            yield printed
        finally:
            process.terminate()
            assert process.wait(60) == 0

    def runs(self) -> bool:
        store = self.config.installation.database_path
        assert store is not None
        running = nearby.find(store)
        if running is None:
            return False
        try:
            return httpx.get(f"{running.url}/health/ready").status_code == 200
        except httpx.HTTPError:
            return False


@pytest.fixture
def stranger(tmp_path: Path) -> Stranger:
    made = Stranger(tmp_path)
    begun = made.types("init")
    assert begun.returncode == 0, begun.stderr
    path = tmp_path / "laufzettel.toml"
    text = path.read_text()
    # Other tests run beside this one: the ports that init writes may be taken.
    for port, free in zip(("8080", "9001", "9002"), free_ports(3), strict=True):
        assert port in text
        text = text.replace(port, free)
    path.write_text(text)
    assert made.types("check").returncode == 0
    return made


def received(printed: Path) -> list[dict[str, Any]]:
    lines = [json.loads(line) for line in printed.read_text().splitlines()]
    return [line for line in lines if "verdict" in line]


@pytest.mark.req("F12")
@pytest.mark.timeout(240)
def test_five_commands_lead_to_the_first_verified_message(stranger: Stranger) -> None:
    with stranger.leaves_running("run"), stranger.leaves_running("receive", "--json") as printed:
        until(stranger.runs, within_s=60)
        sent = stranger.types("send", "inbox", stranger.document.name, "--times", "2", "--no-wait")
        assert sent.returncode == 0, sent.stdout + sent.stderr
        assert "accepted, duplicate" in sent.stdout
        (message,) = until(lambda: received(printed), within_s=30)
    assert (message["verdict"], message["type"]) == ("new", "file.version.completed")
    assert message["file_id"] == stranger.document.name


@pytest.mark.req("F12")
@pytest.mark.timeout(240)
def test_a_stopped_receiver_is_waited_for_and_told_once_after_its_return(
    stranger: Stranger,
) -> None:
    with stranger.leaves_running("run"):
        until(stranger.runs, within_s=60)
        sent = stranger.types("send", "inbox", stranger.document.name, "--no-wait")
        assert sent.returncode == 0, sent.stdout + sent.stderr
        with stranger.leaves_running("receive", "--json") as printed:
            until(lambda: received(printed), within_s=60)
    assert [message["verdict"] for message in received(printed)] == ["new"]


@pytest.mark.req("F12")
@pytest.mark.req("F5")
@pytest.mark.timeout(240)
def test_files_are_followed_to_their_end_and_refusals_are_told_with_their_reason(
    stranger: Stranger,
) -> None:
    empty = stranger.folder / "empty.pdf"
    empty.touch()
    config = stranger.folder / "laufzettel.toml"
    config.write_text(config.read_text().replace("# { name", "{ name"))
    with stranger.leaves_running("run"), stranger.leaves_running("receive"):
        until(stranger.runs, within_s=60)
        with stranger.leaves_running("listen", "inbox") as heard:
            until(lambda: "Listening" in heard.read_text(), within_s=30)
            good = stranger.types("send", "inbox", stranger.document.name, "--json")
            bad = stranger.types("send", "inbox", empty.name)
            forged = stranger.types("send", "inbox", empty.name, "--profile", "broadnet")
            until(lambda: "rejected" in heard.read_text(), within_s=30)
            deliveries = heard.read_text()
    assert good.returncode == 0, good.stdout + good.stderr
    assert json.loads(good.stdout)["state"] == "processed"
    assert (bad.returncode, forged.returncode) == (1, 1)
    assert "accepted → failed → empty file" in bad.stdout
    assert "refused" in forged.stdout
    assert "no signature" in deliveries
    assert deliveries.count("accepted") == 2


@pytest.mark.req("F5")
@pytest.mark.timeout(120)
def test_without_a_running_process_the_mend_is_said(stranger: Stranger) -> None:
    sent = stranger.types("send", "inbox", stranger.document.name)
    assert sent.returncode == 1
    assert "laufzettel run" in sent.stderr

"""Commands on terminals and machines that are not as one would wish."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.commands import START, environment, laufzettel


def _run(*arguments: str | bytes, to: str = "", **environ: str) -> subprocess.CompletedProcess[str]:
    with Path(to or os.devnull).open("w", encoding="utf-8") as output:
        return subprocess.run(
            [sys.executable, "-c", START, *arguments],
            env=environment(**environ),
            stdout=output if to else subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )


@pytest.mark.req("F5")
def test_an_argument_that_is_no_text_is_wrong_usage() -> None:
    ended = _run("files", b"\xff")
    assert ended.returncode == 2
    assert ended.stderr == "error: an argument is not UTF-8 → type it in UTF-8\n"


@pytest.mark.req("F5")
@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no full device")
def test_an_output_that_is_full_ends_in_words() -> None:
    ended = _run("secrets", "--help", to="/dev/full")
    assert ended.returncode == 1
    assert ended.stderr.startswith("error: No space left on device")
    assert "Traceback" not in ended.stderr


@pytest.mark.req("F5")
def test_a_folder_that_cannot_be_made_ends_in_words(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    ended = laufzettel("init", str(tmp_path / "file" / "below"), folder=tmp_path)
    assert ended.returncode == 1
    assert "file/below" in ended.stderr
    assert "Traceback" not in ended.stderr


@pytest.mark.req("F5")
def test_a_terminal_that_knows_only_ascii_is_given_every_name(tmp_path: Path) -> None:
    old = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    ended = laufzettel("check", "-c", "Rechnungen für März.toml", folder=tmp_path, **old)
    assert ended.returncode == 2
    assert "Traceback" not in ended.stderr


@pytest.mark.req("F5")
def test_a_slip_that_is_nested_without_end_is_no_slip(tmp_path: Path) -> None:
    (tmp_path / "slip.json").write_text("[" * 100_000)
    ended = laufzettel("slip", "verify", "slip.json", folder=tmp_path)
    assert ended.returncode == 2
    assert ended.stderr.startswith("error: slip.json")

"""Completion in the shells themselves; one that is not installed is read through by eye alone."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from typer.testing import CliRunner

from app.cli import app


def script(shell: str) -> str:
    result = CliRunner().invoke(app, ["completion", shell])
    assert result.exit_code == 0, result.output
    return result.stdout


def completed(tmp_path: Path, *words: str) -> set[str]:
    """What bash offers for the last word."""
    (tmp_path / "laufzettel.bash").write_text(script("bash"))
    told = " ".join(f"'{word}'" for word in ("laufzettel", *words))
    program = (
        f"source {tmp_path}/laufzettel.bash; COMP_WORDS=({told}); COMP_CWORD={len(words)}; "
        '_laufzettel; printf "%s\\n" "${COMPREPLY[@]}"'
    )
    bash = shutil.which("bash")
    if bash is None:
        pytest.skip("there is no bash")
    done = subprocess.run([bash, "-c", program], capture_output=True, text=True, check=True)
    return set(done.stdout.split())


@pytest.mark.req("F5")
def test_bash_completes_commands_options_and_commands_inside_commands(tmp_path: Path) -> None:
    assert completed(tmp_path, "pa") == {"pause"}
    assert {"files", "show", "tokens"} <= completed(tmp_path, "")
    assert completed(tmp_path, "pause", "destination:erp", "--rea") == {"--reason"}
    assert completed(tmp_path, "-c", "here.toml", "tokens", "cr") == {"create"}
    assert "--role" in completed(tmp_path, "tokens", "create", "ada", "--")


@pytest.mark.req("F5")
@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_each_shell_can_read_what_is_made_for_it(shell: str, tmp_path: Path) -> None:
    text = script(shell)
    assert "redeliver" in text
    program = shutil.which(shell)
    if program is None:
        pytest.skip(f"there is no {shell}")
    path = tmp_path / "script"
    path.write_text(text)
    subprocess.run([program, "-n", str(path)], check=True)

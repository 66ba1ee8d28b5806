"""The tutorial, typed as it stands on its page."""

from __future__ import annotations

import re
import shlex
import subprocess
from contextlib import ExitStack
from functools import partial
from pathlib import Path

import pytest

from tests.commands import ROOT
from tests.e2e.test_first_ten_minutes import Stranger, free_ports
from tests.runtimes import until

PAGE = (ROOT / "docs/tutorial/first-source.md").read_text(encoding="utf-8")
COMMANDS = re.findall(r"^\$ (.+)$", PAGE, re.MULTILINE)
STAYS = {"run", "receive"}


def with_free_ports(folder: Path) -> None:
    """Other tests run beside this one: the ports that ``init`` writes may be taken."""
    path = folder / "laufzettel.toml"
    text = path.read_text()
    for port, free in zip(("8080", "9001", "9002"), free_ports(3), strict=True):
        text = text.replace(port, free)
    path.write_text(text)


def is_receiving(printed: Path) -> bool:
    return "Receiving" in printed.read_text()


def typed(stranger: Stranger, command: str) -> str:
    """What a command that ends prints; it must have done what was asked."""
    if not command.startswith("laufzettel "):
        subprocess.run(["sh", "-c", command], cwd=stranger.folder, check=True, timeout=60)
        return ""
    ended = stranger.types(*shlex.split(command)[1:])
    assert ended.returncode == 0, f"{command}: {ended.stdout}{ended.stderr}"
    return ended.stdout


@pytest.mark.timeout(240)
def test_every_command_of_the_tutorial_does_what_the_page_says(tmp_path: Path) -> None:
    stranger = Stranger(tmp_path)
    printed: dict[str, str] = {}
    with ExitStack() as terminals:
        for command in COMMANDS:
            verb = shlex.split(command)[1]
            if verb in STAYS:
                left = terminals.enter_context(stranger.leaves_running(verb))
                if verb == "run":
                    until(stranger.runs, within_s=60)
                else:
                    until(partial(is_receiving, left), within_s=60)
                continue
            printed[command] = typed(stranger, command)
            if verb == "init":
                with_free_ports(tmp_path)
        told = (tmp_path / "receive.out").read_text()
    assert "file.version.completed inbox/letter.txt" in told
    assert told.count("200 new") + told.count("204 new") == 1
    assert "inbox" in printed["laufzettel check"]
    assert "letter.txt" in printed["laufzettel show letter.txt"]

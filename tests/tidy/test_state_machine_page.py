"""The page on the state machine says what the code does."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, get_args

import pytest

from domain.events import FileEvent
from domain.work import JOB_MOVES, MESSAGE_MOVES, VERSION_MOVES

PAGE = (Path(__file__).parents[2] / "docs/explanation/state-machine.md").read_text()


@pytest.mark.req("C1")
@pytest.mark.parametrize(
    "heading, moves",
    [("A version", VERSION_MOVES), ("A job", JOB_MOVES), ("A message", MESSAGE_MOVES)],
)
def test_the_tables_are_those_of_the_code(heading: str, moves: Mapping[Any, Any]) -> None:
    section = PAGE.split(f"### {heading}\n", 1)[1].split("\n#", 1)[0]
    rows = re.findall(r"^\| `(\w+)` \| (.*) \|$", section, re.MULTILINE)
    shown = {current: set(re.findall(r"`(\w+)`", to)) for current, to in rows}
    assert shown == {current: set(to) for current, to in moves.items()}


def test_every_event_is_explained() -> None:
    section = PAGE.split("## Events\n", 1)[1].split("\n## ", 1)[0]
    assert set(re.findall(r"`([A-Z]\w+)`", section)) == {k.__name__ for k in get_args(FileEvent)}

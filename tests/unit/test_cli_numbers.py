"""Numbers on the command line: each option says its range, so that none reaches what overflows."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

from app.cli import app


def _options(command: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    for name, each in getattr(command, "commands", {}).items():
        yield from _options(each, f"{path} {name}".strip())
    yield from ((path, option) for option in command.params)


NUMBERS = [
    (path, option)
    for path, option in _options(typer.main.get_command(app))
    if option.type_descriptor.annotation in {int, float} and not option.hidden
]


@pytest.mark.req("F5")
@pytest.mark.parametrize("path, option", NUMBERS, ids=str)
def test_every_number_has_a_least_and_a_most(path: str, option: Any) -> None:
    assert None not in (option.min, option.max), f"{path} {option.opts[0]}"


def test_a_number_out_of_its_range_is_wrong_usage_and_says_the_range() -> None:
    asked = ["explain", "--profile", "box", "--at", "9" * 30]
    result = CliRunner().invoke(app, asked)
    assert result.exit_code == 2
    assert "--at" in result.output
    assert "253402300799" in result.output

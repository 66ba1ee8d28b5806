"""What a command says to people: problems with their mends on stderr, and how it ends."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NoReturn

import typer

if TYPE_CHECKING:  # --help needs none of it
    from app.config import Config, Problem

FAILED = 1
WRONG = 2  # usage or configuration

ConfigOption = Annotated[
    Path,
    typer.Option(
        "-c", "--config", metavar="FILE", envvar="LAUFZETTEL_CONFIG", help="The configuration."
    ),
]
UrlOption = Annotated[
    str,
    typer.Option(
        "--url", metavar="URL", help="A running installation to ask, with LAUFZETTEL_TOKEN."
    ),
]
JsonOption = Annotated[bool, typer.Option("--json", help="One JSON document, for scripts.")]
DEFAULT_CONFIG = Path("laufzettel.toml")


def complain(problems: Iterable[Problem], *, level: str = "error") -> None:
    """Print each problem in a line of its own, on stderr."""
    for problem in problems:
        print(f"{level}: {problem}", file=sys.stderr)


def refuse(what: str, mend: str, *, status: int = WRONG) -> NoReturn:
    """Say what is wrong and what mends it, and end."""
    print(f"error: {what} → {mend}", file=sys.stderr)
    raise typer.Exit(status)


def config_or_exit(path: Path) -> Config:
    """The configuration; without a usable one every mistake is printed and the command ends."""
    from app.config import Invalid, load, process_environment

    config = load(path, process_environment())
    if isinstance(config, Invalid):
        complain(config.problems)
        raise typer.Exit(WRONG)
    return config

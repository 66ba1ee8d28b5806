"""``init`` and ``check``: a first configuration, and whether one is sound."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from app.cli.screen import (
    DEFAULT_CONFIG,
    FAILED,
    ConfigOption,
    JsonOption,
    complain,
    config_or_exit,
    refuse,
)

if TYPE_CHECKING:  # --help needs none of it
    from app.config import Config, Finding


def init(
    folder: Annotated[Path, typer.Argument(metavar="[DIR]")] = Path(),
    source: Annotated[
        str, typer.Option(metavar="PROFILE", help="How the source signs its webhooks.")
    ] = "standard-webhooks",
    destination: Annotated[
        str, typer.Option(metavar="URL", help="Who is told about finished files.")
    ] = "http://127.0.0.1:9002/",
) -> None:
    """Write a commented laufzettel.toml and a .env with fresh secrets; never overwrite."""
    import difflib

    from app.cli.first_files import next_commands, write_first_files
    from domain import profiles

    if source not in profiles.names():
        near = difflib.get_close_matches(source, profiles.names(), n=1)
        known = ", ".join(profiles.names())
        mend = f"did you mean {near[0]}?" if near else f"take one of: {known}"
        refuse(f"there is no profile {source}", mend)
    if not destination.startswith(("http://", "https://")):
        refuse("the destination is no http or https address", 'write "https://host/path"')
    taken = write_first_files(folder, profile=source, destination=destination)
    if taken:
        refuse(f"{taken} exists", "remove it yourself, or name another folder")
    print(next_commands(folder, profile=source, destination=destination))


def check(
    config: ConfigOption = DEFAULT_CONFIG,
    *,
    connect: Annotated[
        bool, typer.Option("--connect", help="Ask database, broker, artifacts and names too.")
    ] = False,
    against_running: Annotated[
        bool, typer.Option("--against-running", help="Say what a start with it would change.")
    ] = False,
    json: JsonOption = False,
) -> None:
    """Say whether the configuration is sound, one line a part, and what in it is unsafe.

    Exit status: 0 sound (warnings may stand), 1 something needs mending, 2 it cannot be used.
    """
    from app.cli.parts import described, findings_of_parts

    loaded = config_or_exit(config)
    found = findings_of_parts(loaded)
    if connect:
        found += _unreachable(loaded)
    changed: tuple[str, ...] = ()
    if against_running:
        changed, orphaned = _compared(loaded)
        found += orphaned
    if json:
        print(_as_json(found, changed))
    else:
        for line in described(loaded):
            print(line)
        for key in changed:
            print(f"changed      {key}")
        for finding in found:
            complain([finding.problem], level=finding.level)
    if any(finding.level == "error" for finding in found):
        raise typer.Exit(FAILED)


def _unreachable(config: Config) -> tuple[Finding, ...]:
    from app.compose.connecting import unreachable
    from app.config import Finding

    return tuple(Finding("error", problem) for problem in unreachable(config))


def _compared(config: Config) -> tuple[tuple[str, ...], tuple[Finding, ...]]:
    """The keys that differ from the last start, and the work that a start would orphan."""
    from app.compose.connecting import Compared, compared
    from app.config import Finding

    told = compared(config)
    if isinstance(told, Compared):
        return told.changed, tuple(Finding("error", problem) for problem in told.orphans)
    return (), (Finding("error", told),)


def _as_json(found: tuple[Finding, ...], changed: tuple[str, ...]) -> str:
    import json

    rows = [
        {
            "level": finding.level,
            "file": finding.problem.file,
            "key": finding.problem.key,
            "what": finding.problem.what,
            "mend": finding.problem.mend,
        }
        for finding in found
    ]
    return json.dumps({"findings": rows, "changed": changed}, ensure_ascii=False, indent=2)

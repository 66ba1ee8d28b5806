"""``send``: files of this machine as a source would announce them, followed to their end."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from app.cli.screen import DEFAULT_CONFIG, FAILED, ConfigOption, JsonOption, UrlOption


def send(
    source: Annotated[str, typer.Argument(metavar="SOURCE")],
    files: Annotated[list[Path], typer.Argument(metavar="FILE…")],
    times: Annotated[
        int, typer.Option(metavar="N", min=1, max=1000, help="Deliver each so often.")
    ] = 1,
    profile: Annotated[str, typer.Option(metavar="P", help="Sign in a provider's way.")] = "",
    version: Annotated[str, typer.Option(metavar="V", help="Else the content's digest.")] = "",
    config: ConfigOption = DEFAULT_CONFIG,
    url: UrlOption = "",
    *,
    no_wait: Annotated[
        bool, typer.Option("--no-wait", help="Do not follow; end when the bytes were fetched.")
    ] = False,
    json: JsonOption = False,
) -> None:
    """Announce files of this machine as SOURCE does, and follow each to its end.

    They are served on the first loopback entry of the source's hosts. A file's id is its name.
    The exit status is 1 if any of them failed or was refused.
    """
    from app.cli.client import Reach, connected
    from app.cli.screen import config_or_exit
    from app.cli.sending import address_or_exit, announcing, follow, report, source_or_exit

    loaded = config_or_exit(config)
    found = source_or_exit(loaded, source, profile=profile)
    address = url.rstrip("/") or address_or_exit(loaded)
    with announcing(found, address, public_url=loaded.installation.public_url) as desk:
        courses = [desk.deliver(path, version=version, times=times) for path in files]
        if no_wait:
            desk.await_fetched()
        else:
            with connected(Reach(config, url)) as api:
                follow(api, courses, is_shown=not json)
    report(courses, as_json=json)
    if not all(course.is_well for course in courses):
        raise typer.Exit(FAILED)

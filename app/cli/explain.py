"""``explain``: what acceptance would make of a recorded request, without storing anything."""

from __future__ import annotations

import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from app.cli.screen import DEFAULT_CONFIG, ConfigOption, JsonOption, config_or_exit, refuse

if TYPE_CHECKING:  # --help needs none of it
    from app.cli.judgement import Judge, Judgement
    from domain.profiles import Source
    from domain.schemes import Request

_INPUT_LIMIT_BYTES = 64 * 2**20
_LATEST_UNIX_S = 253_402_300_799  # the last second of 9999, the last that a datetime has


def explain(
    source: Annotated[str, typer.Argument(metavar="[SOURCE]", help="A source of the file.")] = "",
    file: Annotated[str, typer.Argument(metavar="[FILE|-]", help="Recorded requests.")] = "-",
    profile: Annotated[str, typer.Option(metavar="P", help="A profile, without a file.")] = "",
    secret: Annotated[
        list[str] | None, typer.Option(metavar="env:NAME", help="Its secret; may be repeated.")
    ] = None,
    allow: Annotated[
        list[str] | None, typer.Option(metavar="WHO", help="A topic or channel that may speak.")
    ] = None,
    at: Annotated[
        int | None,
        typer.Option(metavar="UNIX", min=0, max=_LATEST_UNIX_S, help="The clock to judge by."),
    ] = None,
    config: ConfigOption = DEFAULT_CONFIG,
    *,
    json: JsonOption = False,
) -> None:
    """Say what acceptance would make of a recorded request, without storing anything.

    Reads JSON, one object or one a line, with method, url, headers, body_utf8 or body_base64.
    With --json one object a line is printed, in the same order.
    """
    from app.cli.recorded import Unreadable, recorded

    if profile:
        # With --profile the only argument is the input.
        file = source if source and file == "-" else file
        judge, url = _by_profile(profile, secret or [], allow or [], config, at), ""
    elif source:
        judge, url = _by_source(source, config, at)
    else:
        refuse("there is no source to judge by", "name a SOURCE, or give --profile and --secret")
    found = recorded(_input(file), url=url or f"http://127.0.0.1:8080/hooks/{profile}")
    if isinstance(found, Unreadable):
        refuse(f"{found.place} {found.what}", "write method, url, headers and a body as JSON")
    for request in found:
        _show(request, judge.judge(request), as_json=json)


def _moment(at: int | None) -> datetime:
    from app.clock import SystemClock

    return SystemClock().now() if at is None else datetime.fromtimestamp(at, UTC)


def _by_source(name: str, path: Path, at: int | None) -> tuple[Judge, str]:
    from app.cli.judgement import Judge
    from app.web.proofs import primitives

    loaded = config_or_exit(path)
    source = loaded.source(name)
    if source is None:
        known = ", ".join(each.name for each in loaded.sources) or "none is configured"
        refuse(f"there is no source {name}", f"name one of: {known}")
    place = loaded.installation.public_url or loaded.installation.base_url
    return Judge(source.ready, primitives(), _moment(at)), f"{place}/hooks/{name}"


def _by_profile(
    name: str, references: list[str], allow: list[str], path: Path, at: int | None
) -> Judge:
    from app.cli.judgement import Judge
    from app.web.proofs import primitives

    secrets = secrets_or_exit(references, path)
    pem = next((text.encode() for text in secrets if text.startswith("-----BEGIN")), None)
    source = _bare(name, secrets, tuple(allow))
    return Judge(source, primitives(lambda _url: pem), _moment(at), is_bare=True)


def _bare(name: str, secrets: tuple[str, ...], allow: tuple[str, ...]) -> Source:
    from app.cli.judgement import PLACEHOLDER_HOST
    from domain import profiles

    if name == "hmac":
        refuse("hmac is described by a source", "configure one, and name it as SOURCE")
    settings = profiles.SourceSettings(
        profile=name, secrets=secrets, allow=allow, host=PLACEHOLDER_HOST
    )
    source = profiles.prepare(settings)
    if not isinstance(source, profiles.Source):
        refuse("; ".join(f"{e.key} {e.reason}" for e in source), source[0].mend)
    return source


def secrets_or_exit(references: list[str], path: Path) -> tuple[str, ...]:
    """What ``env:NAME`` and ``file:PATH`` lead to; the ``.env`` beside the configuration counts."""
    from app.config import process_environment
    from app.config.environment import Missing, dereference, is_reference, read_dot_env

    folder = path.parent.absolute()
    environ = {**read_dot_env(folder / ".env").values, **process_environment()}
    found = []
    for reference in references:
        if not is_reference(reference):
            refuse("a secret on the command line can be read by others", 'write "env:NAME"')
        value = dereference(reference, environ=environ, folder=folder)
        if isinstance(value, Missing):
            refuse(value.why, value.mend)
        found.append(value)
    return tuple(found)


def _input(file: str) -> str:
    try:
        if file == "-":
            raw = sys.stdin.buffer.read(_INPUT_LIMIT_BYTES)
        else:
            with Path(file).open("rb") as source:
                raw = source.read(_INPUT_LIMIT_BYTES)
        return raw.decode("utf-8-sig")
    except OSError as error:
        refuse(f"{file} cannot be read ({error.strerror})", "name a file, or - for the input")
    except UnicodeDecodeError:
        refuse(f"{file} is not UTF-8", "save it as UTF-8; bodies of bytes go into body_base64")


def _show(request: Request, found: Judgement, *, as_json: bool) -> None:
    import json

    if as_json:
        print(json.dumps(found.as_data(), ensure_ascii=False))
        return
    print(f"{request.method} {request.path}")
    print(f"  {found.verdict:<10}{found.reason}")
    print(f"  {'answer':<10}{found.status}")
    for event in found.events:
        version = "" if event.version is None else f" version {event.version}"
        print(f"  {'event':<10}{event.event_id}: {event.type} ({event.action})")
        print(f"  {'':<10}file {event.file_id}{version} {event.name}".rstrip())
    for turned in found.rejected:
        print(f"  {'rejected':<10}entry {turned.index}: {turned.field} {turned.reason}")

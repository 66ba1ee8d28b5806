"""``receive``: a receiver to try with, that says what is wrong in words."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import TYPE_CHECKING, Annotated
from urllib.parse import SplitResult, urlsplit

import typer

from app.cli import words
from app.cli.screen import DEFAULT_CONFIG, ConfigOption, JsonOption, config_or_exit, refuse

if TYPE_CHECKING:  # --help needs none of it
    from app.cli.demo.receiver import Arrival, Receiver, Shown
    from app.cli.demo.serving import LoopbackServer
    from app.config import Destination
    from domain.schemes import Key

DEFAULT_PORT = 9002
_USUAL_URL = f"http://127.0.0.1:{DEFAULT_PORT}/hooks"
_WORDS = {
    "new": "new",
    "repeat": "repeat: this webhook-id came before, nothing is done again",
    "old": "old: dropped",
    "refused": "refused",
    "failed": "answered with an error, as told",
}


def receive(
    port: Annotated[
        int | None, typer.Option(metavar="N", min=0, max=65_535, help="0 takes a free one.")
    ] = None,
    secret: Annotated[
        list[str] | None, typer.Option(metavar="env:NAME", help="What messages are signed with.")
    ] = None,
    fail: Annotated[
        int | None,
        typer.Option(metavar="STATUS", min=400, max=599, help="Answer this, keep nothing."),
    ] = None,
    hang: Annotated[str, typer.Option(metavar="20s", help="Keep, and answer late.")] = "",
    journal: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Remember the messages in this file.")
    ] = None,
    config: ConfigOption = DEFAULT_CONFIG,
    *,
    drop_answer: Annotated[
        bool, typer.Option("--drop-answer", help="Keep, and give no answer.")
    ] = False,
    json: JsonOption = False,
) -> None:
    """Receive messages on this machine: verify them, know repeats, print them.

    Without options, port and secrets are those of the first destination of the configuration that
    is on this machine.
    """
    from app.cli.demo.receiver import Behaviour

    behaviour = Behaviour(fail=fail or 0, hang_s=_hang_s(hang), drop_answer=drop_answer)
    keys, place = _keys(secret or [], config)
    receiver = _receiver(keys, journal, _show_json if json else _show)
    receiver.misbehave(behaviour)
    wanted = (place.port or DEFAULT_PORT) if port is None else port
    server = _server(receiver, wanted)
    _greet(server.url(place.path or "/"), len(keys), as_json=json)
    _serve(server, receiver)


def _greet(url: str, secrets: int, *, as_json: bool) -> None:
    import json

    plain = f"Receiving at {url}, with {words.counted(secrets, 'secret')}. Ctrl-C ends it."
    print(json.dumps({"listening": url}) if as_json else plain, flush=True)


def _hang_s(text: str) -> float:
    from domain.units import seconds

    if not text:
        return 0.0
    found = seconds(text)
    if found is None:
        refuse(f"--hang {text} is no duration", 'write it like "20s"')
    return found


def _keys(references: list[str], path: Path) -> tuple[tuple[Key, ...], SplitResult]:
    from app.cli.demo.receiver import keys_of
    from app.cli.explain import secrets_or_exit
    from domain.schemes import InvalidSecret

    if references:
        secrets, url = secrets_or_exit(references, path), _USUAL_URL
    elif path.is_file():
        destination = _local_destination(path)
        url = destination.url
        secrets = tuple(secret.reveal() for secret in destination.secrets)
    else:
        refuse("there is no secret to verify with", "give --secret env:NAME, or -c FILE")
    keys = keys_of(secrets)
    if isinstance(keys, InvalidSecret):
        refuse(f"the secret cannot be used: {keys.reason}", "take one as laufzettel init makes it")
    return keys, urlsplit(url)


def _local_destination(path: Path) -> Destination:
    from domain.addresses import host_of, is_loopback

    config = config_or_exit(path)
    found = next((d for d in config.destinations if is_loopback(host_of(d.url))), None)
    if found is None:
        refuse("no destination is on this machine", "give --secret env:NAME and --port N")
    return found


def _receiver(keys: tuple[Key, ...], path: Path | None, shown: Shown) -> Receiver:
    from app.cli.demo.journal import Journal
    from app.cli.demo.receiver import Receiver
    from app.clock import SystemClock
    from app.web.proofs import primitives

    return Receiver(
        keys,
        clock=SystemClock(),
        journal=Journal(path) if path else None,
        shown=shown,
        primitives=primitives(),
    )


def _server(receiver: Receiver, port: int) -> LoopbackServer:
    from app.cli.demo.serving import LoopbackServer

    try:
        return LoopbackServer(receiver.respond, port=port)
    except OSError as error:
        refuse(f"port {port} cannot be had ({error.strerror})", "end who has it, or give --port N")


def _serve(server: LoopbackServer, receiver: Receiver) -> None:
    from app.cli.stopping import stopped

    ended = threading.Event()
    with stopped(ended):
        server.start()
        ended.wait()
    receiver.close()
    server.stop()


def _show(arrival: Arrival) -> None:
    word = _WORDS[arrival.verdict]
    why = f" {arrival.reason}" if arrival.verdict in {"refused", "old", "failed"} else ""
    print(f"{arrival.status} {word}{':' if why else ''}{why}", flush=True)
    if not arrival.type:
        return
    print(f"    {arrival.type} {arrival.source}/{arrival.file_id} version {arrival.version}")
    print(f"    {arrival.name}, sequence {arrival.sequence}, {arrival.message_id}")
    if arrival.artifacts:
        print(f"    artifacts: {', '.join(arrival.artifacts)}")
    if arrival.error:
        print(f"    error: {arrival.error}")
    print(end="", flush=True)


def _show_json(arrival: Arrival) -> None:
    import json
    from dataclasses import asdict

    print(json.dumps(asdict(arrival), ensure_ascii=False), flush=True)

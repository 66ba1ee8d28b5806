"""Builds the stage: the samples, their documents and an installation, all on free ports."""

from __future__ import annotations

import socket
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path

from app.cli.demo.documents import Document
from app.cli.demo.installation import SOURCE, Installation, Secrets, fresh_secrets
from app.cli.demo.journal import Journal
from app.cli.demo.platform import Platform
from app.cli.demo.play import Board, Stage
from app.cli.demo.receiver import Receiver, keys_of
from app.cli.demo.script import Author, Scene
from app.cli.demo.sender import Sender
from app.cli.demo.serving import LoopbackServer
from app.clock import SeededDice, SystemClock, SystemDice
from domain import profiles
from domain.profiles import SourceSettings
from domain.schemes import InvalidSecret


@contextmanager
def staged(
    folder: Path, documents: tuple[Document, ...], *, seed: int, environ: Mapping[str, str]
) -> Iterator[tuple[Stage, tuple[Scene, ...]]]:
    """The stage, everything on it listening but the installation, and the scenes to play."""
    clock, secrets = SystemClock(), fresh_secrets(SystemDice())
    with ExitStack() as ending:
        journal = Journal(folder / "platform.jsonl")
        platform = Platform(clock=clock, journal=journal)
        files = LoopbackServer(platform.respond).start()
        ending.callback(files.stop)
        ending.callback(platform.close)
        board = Board(clock)
        receiver = _receiver(secrets, folder / "erp.jsonl", board, clock)
        erp = LoopbackServer(receiver.respond).start()
        ending.callback(erp.stop)
        ending.callback(receiver.close)
        installation = Installation(folder, port=free_port(), clock=clock, environ=environ)
        installation.write(secrets, platform=files.host, erp=erp.url("/hooks"))
        ending.callback(installation.kill)
        sender = _sender(secrets.platform, installation, clock, journal)
        ending.callback(sender.close)
        strange = fresh_secrets(SystemDice()).platform
        forger = _sender(strange, installation, clock, journal)
        ending.callback(forger.close)
        ending.callback(board.close)
        author = Author(files.url("").rstrip("/"), clock.now(), SeededDice(seed))
        scenes = author.scenes(documents)
        _fill(platform, scenes)
        yield Stage(installation, receiver, board, sender, forger, clock), scenes


def _receiver(secrets: Secrets, path: Path, board: Board, clock: SystemClock) -> Receiver:
    keys = keys_of((secrets.erp,))
    if isinstance(keys, InvalidSecret):
        raise TypeError(keys.reason)
    return Receiver(keys, clock=clock, journal=Journal(path), shown=board.arrived)


def _sender(
    secret: str, installation: Installation, clock: SystemClock, journal: Journal
) -> Sender:
    source = profiles.prepare(SourceSettings(secrets=(secret,)))
    if not isinstance(source, profiles.Source):
        raise TypeError(source[0].reason)
    hook = f"{installation.url}/hooks/{SOURCE}"
    return Sender(source, hook, clock=clock, journal=journal)


def _fill(platform: Platform, scenes: tuple[Scene, ...]) -> None:
    for scene in scenes:
        document = scene.document
        for number, content in enumerate(document.versions, start=1):
            kind = document.media_type
            platform.put(document.file_id, str(number), content, media_type=kind)
        for version, moods in scene.moods:
            platform.misbehave(document.file_id, version, *moods)


def free_port() -> int:
    """A port of this machine that nobody listens on now."""
    # The process is started twice on one port, so it has to be known beforehand.
    with socket.create_server(("127.0.0.1", 0)) as probe:
        return int(probe.getsockname()[1])

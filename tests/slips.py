"""An installation with a past: files that came through, failed, or were not understood."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from typer.testing import CliRunner

from app.cli import app
from app.compose import Process
from app.config import Config
from app.ledger.requests import Accept
from tests import runtimes as r
from tests.servers import Peer, Received, Server, serving

TIRED = "retry = { base = '10ms', cap = '20ms', attempts = 2 }"
RECIPE = 'transforms = [{ name = "checksum", use = "checksum" }]'


@dataclass(frozen=True)
class Shown:
    """How a command ended, and what it said."""

    status: int
    out: str
    err: str

    @property
    def document(self) -> Any:
        return json.loads(self.out)


@dataclass(frozen=True)
class Past:
    """A folder with a configuration and a store that no process owns."""

    folder: Path
    config: Config

    def run(self, *arguments: str, **environ: str) -> Shown:
        """A command in this process, over the store."""
        path = str(self.folder / "laufzettel.toml")
        clean = {"LAUFZETTEL_TOKEN": None, "LAUFZETTEL_CONFIG": None, "COLUMNS": "220"}
        ended = CliRunner().invoke(app, ["-c", path, *arguments], env=clean | environ)
        if ended.exception is not None and not isinstance(ended.exception, SystemExit):
            raise ended.exception
        return Shown(ended.exit_code, ended.stdout, ended.stderr)

    def json(self, *arguments: str) -> Any:
        """The document of a command that did what was asked."""
        shown = self.run(*arguments, "--json")
        assert shown.status == 0, shown.err
        return shown.document


def platform(request: Received, peer: Peer) -> None:
    """Serves every file but those called lost."""
    peer.respond(404) if "lost" in request.target else peer.respond(200, b"hello")


def erp(request: Received, peer: Peer) -> None:
    """Takes messages and tells its own id; refuses some, and of some it never says anything."""
    file_id = json.loads(request.body)["data"].get("file_id")
    if file_id == "F-refused":
        peer.respond(422, b"no such order")
    elif file_id == "F-silent":
        peer.close()
    else:
        peer.respond(200, b'{"id": "4711"}')


@contextmanager
def peers() -> Iterator[tuple[Server, Server]]:
    with serving(platform) as source, serving(erp) as receiver:
        yield source, receiver


def configured(folder: Path, source: Server, receiver: Server) -> Config:
    config = r.configured(
        folder,
        source=source.host,
        destination=receiver.url("/hooks"),
        recipe=RECIPE,
        download=TIRED,
        erp=f'{TIRED}\nreference = "/id"\nunclear = "hold"',
    )
    path = folder / "laufzettel.toml"
    path.write_text(
        path.read_text().replace("[laufzettel]", '[laufzettel]\nlisten = "127.0.0.1:0"')
    )
    (folder / ".env").write_text(f"SECRET={r.SECRET}\n")
    (folder / ".env").chmod(0o600)
    return config


FILES = {
    "F-good": "good.txt",
    "F-lost": "lost.txt",
    "F-refused": "refused.txt",
    "F-silent": "silent.txt",
    "F-twin": "good.txt",
}


def live(process: Process, source: Server) -> None:
    """One file comes through, one is not found, one refused, one unclear, one has a twin's name."""
    fields: dict[str, Any]
    for file_id, name in FILES.items():
        fields = {"file_id": file_id, "name": name, "media_type": "text/plain"}
        accept = r.version_accepted(process.base.ledger, source.url(f"/{file_id}"), **fields)
        r.submit(process.base.ledger, _now(accept))
    fields = {"file_id": "F-good", "name": "good.txt", "media_type": "text/plain"}
    again = r.version_accepted(process.base.ledger, source.url("/F-good"), **fields)
    r.submit(process.base.ledger, _now(again))
    other = {"digest": "0" * 64, "compare": lambda _: "0" * 64, "body": b"{}"}
    r.submit(process.base.ledger, replace(_now(again), **other))  # type: ignore[arg-type]
    r.until(lambda: all(_is_settled(process, file_id) for file_id in FILES))


def _now(accept: Accept) -> Accept:
    return replace(accept, received_ms=int(time.time() * 1000))


def _is_settled(process: Process, file_id: str) -> bool:
    file = r.file_of(process, file_id)
    phases: set[str] = {job.phase for job in file.jobs.values()}
    phases |= {message.phase for message in file.messages.values()}
    return bool(file.messages) and phases <= {"done", "dead", "delivered", "held"}


@contextmanager
def past(folder: Path) -> Iterator[Past]:
    """That installation; its peers go on to serve while inside."""
    with peers() as (source, receiver):
        config = configured(folder, source, receiver)
        with r.running(config) as process:
            live(process, source)
        yield Past(folder, config)

"""Builders for tests of a whole process: a configuration on loopback, facts, and conditions."""

from __future__ import annotations

import base64
import hashlib
import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import sqlalchemy as sa

from app.clock import Clock, Dice
from app.compose import Process, Refused, compose_run
from app.config import Config, load
from app.ledger import Ledger
from app.ledger.requests import Accept, Accepted, Answer, Control
from app.store import breakers, projections
from app.store import tables as t
from app.store.engine import Store
from domain.commands import Cause, FileCommand, ReportVersion
from domain.ids import derive
from domain.installation import Paused
from domain.states import File
from tests.servers import Server

SECRET = "whsec_" + base64.b64encode(b"k" * 32).decode()
NEVER = threading.Event()
# Where configured() puts the store; tests for both databases set another.
DATABASE = "sqlite:///store.db"
PDF = (Path(__file__).parent / "cases/files/pdf-ok-2-pages.pdf").read_bytes()


def configured(folder: Path, *, source: str, destination: str, **parts: str) -> Config:
    """A configuration with one source and one destination; ``parts`` are more lines of each."""
    recipe = parts.get("recipe", 'transforms = [{ name = "text", use = "text" }]')
    text = f"""
[laufzettel]
database = "{DATABASE}"
artifacts = "file:artifacts"
{parts.get("installation", "")}
[sources.contracts]
profile = "standard-webhooks"
secrets = ["env:SECRET"]
[sources.contracts.download]
hosts = ["{source}"]
{parts.get("download", 'retry = { base = "10ms", cap = "20ms" }')}
[recipes.invoices]
sources = ["contracts"]
notify = {parts.get("notify", '["erp"]')}
{recipe}
[destinations.erp]
url = "{destination}"
secrets = ["env:SECRET"]
private = true
{parts.get("erp", 'retry = { base = "10ms", cap = "20ms" }')}
{parts.get("more", "")}
"""
    path = folder / "laufzettel.toml"
    path.write_text(text)
    config = load(path, {"SECRET": SECRET})
    assert isinstance(config, Config), config
    return config


@contextmanager
def running(
    config: Config, *, clock: Clock | None = None, dice: Dice | None = None, grace_s: float = 10
) -> Iterator[Process]:
    """The whole process without its web half; stopped at the end."""
    process = compose_run(config, clock=clock, dice=dice, has_web=False)
    assert not isinstance(process, Refused), process
    process.start()
    try:
        yield process
    finally:
        process.stop(grace_s=grace_s)


def stream_of(ledger: Ledger, file_id: str = "F-1") -> str:
    return derive(ledger.book.key, "fil", "contracts", file_id)


def version_accepted(ledger: Ledger, url: str, *, number: int = 1, **fields: Any) -> Accept:
    """A first delivery about a version, as the web side submits it."""
    file_id = fields.pop("file_id", "F-1")
    event_id = fields.pop("event_id", f"{file_id}-v{number}")
    command = ReportVersion(
        stream=stream_of(ledger, file_id),
        cause=Cause("delivery"),
        source="contracts",
        event=derive(ledger.book.key, "evt", "contracts", event_id),
        event_id=event_id,
        file_id=file_id,
        version=str(number),
        value=f"{number:020}",
        url=url,
        **{"name": "invoice.pdf", "media_type": "application/pdf", **fields},
    )
    return accepted(command, event_id)


def accepted(command: FileCommand, event_id: str) -> Accept:
    body = json.dumps({"event": event_id}).encode()
    digest = hashlib.sha256(body).hexdigest()
    return Accept(
        source="contracts",
        event=command.event,  # type: ignore[attr-defined]
        event_id=event_id,
        delivery_id=f"d-{event_id}",
        type="file.version.created",
        stream=command.stream,
        digest=digest,
        rule="bytes",
        compare=lambda _: digest,
        received_ms=0,
        key_id="key",
        body=body,
        command=command,  # type: ignore[arg-type]
    )


def submit(ledger: Ledger, accept: Accept) -> Answer:
    return ledger.submit(accept).result(10)[0]


def announce(process: Process, url: str, **fields: Any) -> Accept:
    """Let a version become known; gives what was accepted."""
    accept = version_accepted(process.base.ledger, url, **fields)
    answer = submit(process.base.ledger, accept)
    assert isinstance(answer, Accepted), answer
    return accept


def settled(process: Process, file_id: str = "F-1") -> File | None:
    """The file, once all its work has ended and somebody was to be told."""
    file = file_of(process, file_id)
    is_open = any(job.is_open for job in file.jobs.values())
    is_open = is_open or any(message.is_open for message in file.messages.values())
    return file if file.messages and not is_open else None


def messages_in(process: Process, state: str) -> list[Any]:
    return [m for m in rows(process.base.store, t.messages) if m.state == state]


def circuit(store: Store, scope: str) -> str:
    with store.read() as connection:
        return breakers.load(connection, scope)


def file_of(process: Process, file_id: str = "F-1") -> File:
    stream = stream_of(process.base.ledger, file_id)
    with process.base.store.read() as connection:
        return projections.load(connection, [stream])[stream]


def rows(store: Store, table: sa.Table) -> list[Any]:
    with store.read() as connection:
        return list(connection.execute(sa.select(table)))


def leases_left(process: Process) -> int:
    return len(rows(process.base.store, t.leases))


def until(condition: Callable[[], Any], *, within_s: float = 20) -> Any:
    """Wait until the condition holds; fails after a while."""
    ends = time.monotonic() + within_s
    while not (found := condition()):
        assert time.monotonic() < ends, "it did not come about"
        NEVER.wait(0.01)
    return found


def told(server: Server) -> list[dict[str, Any]]:
    """The messages that a receiver got, in order."""
    return [json.loads(request.body) for request in server.requests]


def pause(process: Process, what: str) -> None:
    """Let no more of this part's work begin."""
    cause = Cause("operator", operator="ada", reason="test")
    process.base.ledger.submit(Control(Paused(at_ms=1, what=what, reason="test"), cause)).result()

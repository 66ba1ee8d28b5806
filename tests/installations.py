"""A whole installation in a folder: store, Ledger, blobs and the web server on loopback."""

from __future__ import annotations

import hashlib
import hmac
import json
import re
import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import httpx
import sqlalchemy as sa

from app.artifacts import Blobs, open_blobs
from app.clock import Clock, SettableClock, SystemClock, SystemDice
from app.config import Config, load
from app.ledger import Ledger
from app.ledger.book import Book
from app.ledger.requests import Control
from app.ledger.sequencing import Sequencing
from app.store import installation, migrate
from app.store import tables as t
from app.store.engine import Store, open_store
from app.store.installation import Identity
from app.web import Web, create_web
from app.web.access import Access, Role, TokenWish
from app.web.server import Place, WebServer
from domain.commands import Cause
from domain.commands import Destination as Listener
from domain.installation import RecipeDefined

SECRET = "laufzettel-test-secret-1"
OLD_SECRET = "laufzettel-test-secret-2"
NOW = datetime(2026, 11, 30, 10, 15, 30, tzinfo=UTC)
KEY = b"installation-key-of-the-tests..."
# Where recording() puts the store, "" for the folder; tests for both databases set another.
DATABASE = ""
ENVIRON = {"S_SECRET": SECRET, "S_OLD_SECRET": OLD_SECRET, "ERP_SECRET": "whsec_" + "QUJD" * 8}

SOURCE = """
[sources.s]
profile   = "hmac"
secrets   = ["env:S_SECRET"]
signature = "header:X-Signature"
encoding  = "hex"
prefix    = "sha256="
signed    = "{body}"
[sources.s.map]
event_id    = "/id"
type        = "/type"
file_id     = "/file/id"
version     = "/file/version"
name        = "/file/name"
size        = "/file/size"
occurred_at = "/occurred_at"
url         = "http://127.0.0.1:9001/files/{file_id}/content?v={version}"
[sources.s.types]
"file.uploaded" = "version"
"file.deleted"  = "deleted"
"subscription.expiring" = "lifecycle"
"""
# The same source, its time signed and its deliveries numbered.
STAMPED = (
    SOURCE.replace("[sources.s", "[sources.t")
    .replace('"{body}"', '"{header:X-Timestamp}.{header:X-Delivery}.{body}"')
    .replace('prefix    = "sha256="', 'prefix = "sha256="\ntimestamp = "header:X-Timestamp"')
    .replace('event_id    = "/id"', 'event_id = "/id"\ndelivery_id = "header:X-Delivery"')
)
REST = """
[recipes.all]
sources = [{sources}]
transforms = [{steps}]
notify  = ["erp"]

[destinations.erp]
url     = "http://127.0.0.1:9002/hooks"
secrets = ["env:ERP_SECRET"]
private = true
"""


@dataclass
class Installation:
    """A running one; ``http`` is a client of it."""

    config: Config
    store: Store
    ledger: Ledger
    blobs: Blobs
    web: Web
    server: WebServer
    clock: Clock
    http: httpx.Client

    def send(self, body: bytes, *, source: str = "s", **headers: str) -> httpx.Response:
        """Post a delivery, signed unless its signature is given."""
        signed = {"x-signature": signature(body)} | {
            k.replace("_", "-"): v for k, v in headers.items()
        }
        return self.http.post(f"/hooks/{source}", content=body, headers=signed)

    def token(self, role: Role = "admin", *scope: str) -> str:
        """A token of this role."""
        return self.access.create(TokenWish("root", role, scope), Cause("system")).token

    @property
    def access(self) -> Access:
        return Access(self.ledger, self.clock, SystemDice())

    def api(self, method: str, path: str, token: str = "", **more: Any) -> httpx.Response:
        """Ask the API with a token."""
        headers = {"authorization": f"Bearer {token}"} | more.pop("headers", {})
        return self.http.request(method, f"/api/v1{path}", headers=headers, **more)


SUM = '{ name = "sum", use = "checksum" }'


def rest_of(text: str, steps: str) -> str:
    """A recipe and a destination for all the sources in a configuration."""
    names = re.findall(r"^\[sources\.(\w+)\]$", text, re.MULTILINE)
    named = ", ".join(f'"{name}"' for name in names)
    return REST.replace("{sources}", named).replace("{steps}", steps)


def stamped(body: bytes, at: datetime, delivery: str = "d-1") -> dict[str, str]:
    """The headers of a delivery to the source that signs time and delivery id."""
    stamp = str(int(at.timestamp()))
    return {
        "x-timestamp": stamp,
        "x-delivery": delivery,
        "x-signature": signature(f"{stamp}.{delivery}.".encode() + body),
    }


def signature(body: bytes, secret: str = SECRET) -> str:
    return "sha256=" + hmac.new(secret.encode(), body, hashlib.sha256).hexdigest()


def event(**changes: Any) -> bytes:
    """The body of a delivery that announces a version; ``changes`` go to the top or the file."""
    file = {"id": "f-1", "version": 1, "name": "a.pdf", "size": 3}
    top = {"id": "evt-1", "type": "file.uploaded", "occurred_at": "2026-11-30T10:15:00Z"}
    file |= {k.removeprefix("file_"): v for k, v in changes.items() if k.startswith("file_")}
    top |= {k: v for k, v in changes.items() if not k.startswith("file_")}
    return json.dumps(top | {"file": file}).encode()


def configured(folder: Path, text: str) -> Config:
    path = folder / "laufzettel.toml"
    path.write_text(f'[laufzettel]\nartifacts = "file:{folder}/artifacts"\n{text}')
    config = load(path, ENVIRON)
    assert isinstance(config, Config), config
    return config


@contextmanager
def recording(folder: Path, config: Config, clock: Clock) -> Iterator[tuple[Store, Ledger]]:
    """A store and its Ledger, without anything around them."""
    store = open_store(DATABASE or f"sqlite:///{folder}/laufzettel.db")
    if DATABASE:
        migrate.upgrade(store)
    else:
        with store.writing.begin() as connection:
            t.metadata.create_all(connection)
    with store.writing.begin() as connection:
        installation.create(connection, Identity("tests", KEY, 1), 0)
    recipes = tuple(configured.recipe for configured in config.recipes)
    places = {p.name: Listener(p.name, types=p.types) for p in config.destinations}
    pinned = {recipe.digest: recipe for recipe in recipes}
    book = Book(KEY, 1, recipes, places, config.installation.base_url, pinned)
    ledger = Ledger(store, book, clock, SystemDice())
    ledger.start()
    sequencing = Sequencing(store, "test", SystemClock())
    if store.backend != "sqlite":
        sequencing.start()
    try:
        for recipe in recipes:
            defined = RecipeDefined(at_ms=0, digest=recipe.digest, form=recipe.canonical.decode())
            ledger.submit(Control(defined, Cause("system"))).result()
        yield store, ledger
    finally:
        ledger.close()
        sequencing.close()
        store.close()


@contextmanager
def installed(
    folder: Path, text: str = SOURCE, *, steps: str = SUM, clock: Clock | None = None
) -> Iterator[Installation]:
    """Start everything in the folder, stop it on leaving."""
    config = configured(folder, text + rest_of(text, steps))
    clock = clock or SettableClock(NOW)
    with recording(folder, config, clock) as (store, ledger):
        blobs = open_blobs(f"file:{folder}/artifacts")
        web = create_web(config=config, store=store, ledger=ledger, blobs=blobs, clock=clock)
        server = WebServer(web, Place("127.0.0.1", 0), SystemClock())
        server.start()
        try:
            with httpx.Client(base_url=server.url, timeout=30) as http:
                yield Installation(config, store, ledger, blobs, web, server, clock, http)
        finally:
            assert server.stop(grace_s=10)


def found(installation: Installation, table: sa.Table, **wanted: Any) -> list[Any]:
    """The rows of a table that have these values."""
    with installation.store.read() as connection:
        return list(connection.execute(sa.select(table).filter_by(**wanted)))


def count(installation: Installation, table: sa.Table, **wanted: Any) -> int:
    return len(found(installation, table, **wanted))


def recorded(installation: Installation) -> int:
    """How many events of files and sources the log holds; recipes and pins are not among them."""
    kinds = ("RecipeDefined", "DeliveryQuarantined")
    return sum(1 for row in found(installation, t.events) if row.type not in kinds)


def exchange(installation: Installation, request: bytes, *, finish: bool = False) -> bytes:
    """Send bytes as they are and read the answer; ``finish`` ends our side before reading."""
    with socket.create_connection(("127.0.0.1", installation.server.port), timeout=20) as sock:
        with suppress(ConnectionError):
            sock.sendall(request)
        if finish:
            sock.shutdown(socket.SHUT_WR)
        answer = b""
        with suppress(ConnectionError):
            while piece := sock.recv(65536):
                answer += piece
        return answer


def status_of(answer: bytes) -> int:
    """The status of an answer as it came over the wire; 0 for none."""
    return int(answer.split(b" ", 2)[1]) if answer.startswith(b"HTTP/1.1 ") else 0

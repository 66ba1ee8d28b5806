"""A careful sender against the running program, which reads the database behind its back."""

from __future__ import annotations

import hashlib
import hmac
import http.client
import json
import os
import signal
import socket
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from tests.commands import START, environment

SECRET = "a-secret-of-the-reference-receiver"
LARGEST_BYTES = 4096
_NEVER = threading.Event()
CONFIG = """
[laufzettel]
database  = "sqlite:///store.db"
artifacts = "file:artifacts"
listen    = "127.0.0.1:0"
""" + "".join(
    f"""
[sources.{name}]
profile   = "hmac"
secrets   = ["env:RECEIVER_SECRET"]
signature = "header:X-Signature"
signed    = "demo-webhook-v1\\n{{header:X-Delivery}}\\n{{header:X-Timestamp}}\\n{{body}}"
timestamp = "header:X-Timestamp"
max_body  = "4 KiB"
{more}
[sources.{name}.map]
event_id    = "/id"
delivery_id = "header:X-Delivery"
type        = "/event"
file_id     = "/data/file/id"
version     = "/data/file/version"
name        = "/data/file/name"
size        = "/data/file/size"
url         = "http://127.0.0.1:9/{{file_id}}/{{version}}"
[sources.{name}.types]
"file.uploaded" = "version"
"file.deleted"  = "deleted"
"""
    for name, more in (("free", ""), ("strict", 'unknown_fields = "refuse"'))
)
CONFIG += """
[recipes.all]
sources = ["free", "strict"]
"""
# What only a delivery makes. Attempts of the work that follows come and go beside it.
_EFFECTS = {
    "receipts": "SELECT count(*) FROM receipts",
    "bodies": "SELECT count(*) FROM payloads",
    "facts": "SELECT count(*) FROM events WHERE type IN "
    "('VersionReported', 'FileDeleted', 'EventIgnored', 'SubscriptionNoticed')",
    "files": "SELECT count(*) FROM files",
    "jobs": "SELECT count(*) FROM jobs",
}


@dataclass(frozen=True)
class Reply:
    """What came back."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def document(self) -> dict[str, Any]:
        found = json.loads(self.body)
        assert isinstance(found, dict)
        return found

    @property
    def verdict(self) -> tuple[int, str]:
        """The status, and the problem's type or the status in words."""
        return self.status, str(self.document.get("type") or self.document.get("status"))


@dataclass
class Receiver:
    """The program in a folder, and what was asked and found so far."""

    folder: Path
    requests: int = 0
    conditions: list[tuple[str, bool]] = field(default_factory=list)
    url: str = ""

    def holds(self, words: str, held: object) -> None:
        """Note a condition, and whether it held."""
        self.conditions.append((words, bool(held)))

    def unchanged(self, words: str, act: Callable[[], object]) -> None:
        """Note whether doing this left every effect as it was."""
        before = self.effects()
        act()
        self.holds(f"{words}: nothing is stored", self.effects() == before)

    def rows(self, query: str, *values: object) -> list[tuple[Any, ...]]:
        """Read the database, by its file alone."""
        with closing(sqlite3.connect(f"file:{self.folder}/store.db?mode=ro", uri=True)) as store:
            return store.execute(query, values).fetchall()

    def effects(self) -> dict[str, int]:
        """How much of each kind there is."""
        return {name: int(self.rows(query)[0][0]) for name, query in _EFFECTS.items()}

    def send(self, body: bytes, *, source: str = "free", **more: str) -> Reply:
        """Post a delivery; ``more`` are headers that go before the right ones."""
        self.requests += 1
        place = urlsplit(self.url)
        with closing(http.client.HTTPConnection(place.netloc, timeout=30)) as peer:
            peer.request("POST", f"/hooks/{source}", body, signed(body) | headers(more))
            answer = peer.getresponse()
            told = {name.lower(): value for name, value in answer.getheaders()}
            return Reply(answer.status, told, answer.read())

    @contextmanager
    def unheard(self, body: bytes) -> Iterator[None]:
        """Post a delivery, and on leaving hang up without having read its answer."""
        self.requests += 1
        place = urlsplit(self.url)
        lines = [f"{n}: {v}" for n, v in (signed(body) | {"host": "x"}).items()]
        head = "\r\n".join(
            ["POST /hooks/free HTTP/1.1", *lines, f"content-length: {len(body)}", "", ""]
        )
        with socket.create_connection((place.hostname or "", place.port or 0)) as peer:
            peer.sendall(head.encode() + body)
            yield

    @contextmanager
    def running(self, *, point: str = "") -> Iterator[subprocess.Popen[bytes]]:
        """The program as a process of its own; armed, it dies by itself at this point."""
        armed = {"LAUFZETTEL_SCRATCH": str(self.folder), "LAUFZETTEL_POINT": point}
        (self.folder / "laufzettel.toml").write_text(CONFIG)
        near = self.folder / "store.db.process"
        near.unlink(missing_ok=True)
        log = (self.folder / "run.log").open("ab")
        process = subprocess.Popen(
            [sys.executable, "-c", START, "run"],
            cwd=self.folder,
            env=environment(RECEIVER_SECRET=SECRET, **(armed if point else {})),
            stdout=subprocess.DEVNULL,
            stderr=log,
        )
        try:
            until(lambda: near.exists() or process.poll() is not None, 60)
            self.url = json.loads(near.read_text())["url"]
            yield process
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait(60)
            log.close()
        assert process.returncode == (-signal.SIGKILL if point else 0)


def headers(more: dict[str, str]) -> dict[str, str]:
    """Names of headers as they go over the wire."""
    return {name.replace("_", "-"): value for name, value in more.items()}


def signed(
    body: bytes, *, delivery: str = "", off_s: int = 0, secret: str = SECRET
) -> dict[str, str]:
    """The headers of a delivery, signed by hand: none of the program's code is used."""
    delivery = delivery or f"d-{os.urandom(4).hex()}"
    stamp = str(int(time.time()) + off_s)
    over = f"demo-webhook-v1\n{delivery}\n{stamp}\n".encode() + body
    made = hmac.new(secret.encode(), over, hashlib.sha256).hexdigest()
    return {"x-delivery": delivery, "x-timestamp": stamp, "x-signature": made}


def body_of(event: str, /, **changes: Any) -> bytes:
    """An announcement; ``file_…`` changes the file, ``None`` leaves a field out."""
    file: dict[str, Any] = {"id": f"F-{event}", "version": 1, "name": "a.pdf", "size": 3}
    top: dict[str, Any] = {"id": event, "event": "file.uploaded"}
    file |= {k.removeprefix("file_"): v for k, v in changes.items() if k.startswith("file_")}
    top |= {k: v for k, v in changes.items() if not k.startswith("file_")}
    top |= {"data": {"file": {k: v for k, v in file.items() if v is not None}}}
    return json.dumps({k: v for k, v in top.items() if v is not None}).encode()


def until(is_so: Callable[[], bool], seconds: float = 60) -> None:
    """Wait for a condition; it must come true."""
    ends = time.monotonic() + seconds
    while not is_so():
        assert time.monotonic() < ends, "it did not come true"
        _NEVER.wait(0.01)  # whoever is waited for needs the processor

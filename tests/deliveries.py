"""The bodies of the cases, and requests as they go over the wire."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

from app.store import tables as t
from tests.installations import Installation, found, signature

DELIVERIES = Path(__file__).parent / "cases/files/deliveries"
TABLE: dict[str, Any] = json.loads((DELIVERIES / "vectors.json").read_text())


def body_of(name: str) -> bytes:
    return (DELIVERIES / name).read_bytes()


def post(body: bytes, *headers: bytes, path: bytes = b"/hooks/s") -> bytes:
    """A request as it goes over the wire."""
    lines = [b"POST " + path + b" HTTP/1.1", b"host: x", b"connection: close", *headers]
    return b"\r\n".join(lines) + b"\r\n\r\n" + body


def signed(body: bytes) -> bytes:
    return b"x-signature: " + signature(body).encode()


def length(size: int) -> bytes:
    return b"content-length: " + str(size).encode()


def refused(running: Installation, number: int) -> None:
    """Wait until so many refusals are in the history: repeats are recorded as one row."""
    running.web.flush()
    rows = found(running, t.deliveries, verdict="rejected")
    ends = time.monotonic() + 5
    while sum(row.count for row in rows) < number and time.monotonic() < ends:
        rows = found(running, t.deliveries, verdict="rejected")
    assert sum(row.count for row in rows) == number

"""A delivery made ready, sent and read, as the profiles' tests want it."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

from domain import profiles
from domain.profiles import (
    Mapped,
    Source,
    SourceEvent,
    SourceSettings,
)
from domain.schemes import Request

NOW = datetime(2026, 11, 30, 10, 15, 30, tzinfo=UTC)
SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
CREATED: dict[str, Any] = {
    "type": "file.version.created",
    "timestamp": "2026-11-30T10:00:00Z",
    "data": {
        "file_id": "F-17",
        "version": 3,
        "sequence": 42,
        "name": "invoice.pdf",
        "size": 48211,
        "project": "P-9",
        "sha256": "AB" * 32,
        "media_type": "application/pdf",
        "download_url": "https://files.example/F-17/3",
    },
}


def prepared(profile: str = "standard-webhooks", **settings: Any) -> Source:
    made = profiles.prepare(SourceSettings(profile=profile, secrets=(SECRET,), **settings))
    assert isinstance(made, Source), made
    return made


def request(
    body: object, *headers: tuple[str, str], method: str = "POST", query: str = ""
) -> Request:
    raw = body if isinstance(body, bytes) else json.dumps(body).encode()
    sent = (("webhook-id", "msg_1"), *headers)
    return Request(method, f"https://hooks.example/h?{query}", "/h", query, sent, raw)


def read(body: object, source: Source | None = None, *headers: tuple[str, str]) -> Any:
    return profiles.read(source or prepared(), request(body, *headers), NOW)


def only(reading: Any) -> SourceEvent:
    assert isinstance(reading, Mapped), reading
    (event,) = reading.events
    assert isinstance(event, SourceEvent), event
    return event


def changed(**data: Any) -> dict[str, Any]:
    return CREATED | {"data": CREATED["data"] | data}


def without(*names: str) -> dict[str, Any]:
    return CREATED | {"data": {k: v for k, v in CREATED["data"].items() if k not in names}}

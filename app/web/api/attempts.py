"""Tries of jobs and messages as clients see them."""

from __future__ import annotations

import json
from typing import Any

from msgspec import Struct

from app.store.reading.files import Attempt
from app.telemetry.logs import without_credentials
from app.web.api.office import at


class TimingOut(Struct):
    """Where an attempt's time went; ``null`` where a connection was used again."""

    dns_ms: int | None = None
    connect_ms: int | None = None
    tls_ms: int | None = None
    first_byte_ms: int | None = None


class AttemptOut(Struct):
    """One try. Those of messages have what went over the wire, bounded and without secrets."""

    number: int
    at: str | None
    ended_at: str | None
    outcome: str
    error: str
    duration_ms: int | None = None
    url: str | None = None
    status: int | None = None
    method: str | None = None
    request_headers: list[list[str]] = []
    timing: TimingOut | None = None
    response_headers: list[list[str]] = []
    response_body: str | None = None


def attempt_out(attempt: Attempt) -> AttemptOut:
    """One try, with what went over the wire where that is known."""
    wire: dict[str, Any] = json.loads(attempt.exchange) if attempt.exchange else {}
    took_ms = attempt.ended_ms - attempt.started_ms if attempt.ended_ms else None
    url = wire.get("url")
    return AttemptOut(
        number=attempt.number,
        at=at(attempt.started_ms),
        ended_at=at(attempt.ended_ms),
        outcome=attempt.outcome or "running",
        error=without_credentials(attempt.error or wire.get("error") or ""),
        duration_ms=wire.get("duration_ms", took_ms),
        url=without_credentials(url) if url else None,
        status=wire.get("status"),
        method=wire.get("method"),
        request_headers=wire.get("request_headers", []),
        timing=TimingOut(**timing) if (timing := wire.get("timing")) else None,
        response_headers=wire.get("response_headers", []),
        response_body=wire.get("response_body"),
    )

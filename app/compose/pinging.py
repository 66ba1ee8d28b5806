"""A test message to a destination: signed and sent as all others, about no file, and not kept."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from app.artifacts import Blobs
from app.clock import Clock
from app.config import Config
from app.web.api.office import Pinged
from domain import canonical
from domain.outcomes import Again, Dead, Done, Unclear
from domain.signatures import InvalidSecret
from domain.strict_json import JsonObject
from domain.telling import instant
from jobs.notify import NotifyJob, NotifyOutcome, notify, settings_of
from jobs.tools import Http, Tools


def pinger(
    config: Config, *, http: Http, blobs: Blobs, clock: Clock
) -> Callable[[str], Pinged | None]:
    """What sends a test message to the destination of a name; it gives ``None`` for no such."""

    def ping(name: str) -> Pinged | None:
        destination = config.destination(name)
        if destination is None:
            return None
        settings = settings_of(destination, http=http, clock=clock)
        if isinstance(settings, InvalidSecret):
            return Pinged("failed", error="its secret cannot be used")
        now = clock.now()
        at = instant(int(now.timestamp() * 1_000_000))
        body: JsonObject = {
            "type": "laufzettel.ping",
            "timestamp": at,
            "data": {"destination": name},
        }
        job = NotifyJob(f"ping_{int(now.timestamp() * 1000)}", settings, 1, canonical.encode(body))
        # It makes no file, so it needs no folder of its own.
        attempt, outcome = notify(job, Tools(http, blobs, Path(), clock))
        return Pinged(
            _word(outcome),
            url=attempt.url,
            status=attempt.status,
            duration_ms=attempt.duration_ms,
            response_body=attempt.response_body,
            error=attempt.error,
        )

    return ping


def _word(outcome: NotifyOutcome) -> str:
    match outcome:
        case Done():
            return "delivered"
        case Unclear():
            return "unclear"
        case Again() | Dead():
            return "failed"

"""Errors as RFC 9457 wants them: a stable ``type``, words for people, nothing of the request."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import msgspec

MEDIA_TYPE = b"application/problem+json"

TITLES = {
    "authentication": "The request could not be authenticated",
    "forbidden": "This is not allowed to you",
    "not-found": "There is nothing at this address",
    "method-not-allowed": "This method is not allowed here",
    "body-too-large": "The body is too large",
    "invalid-body": "The body did not arrive whole",
    "invalid-json": "The body is not the JSON that is demanded",
    "event-contract": "The event breaks the source's contract",
    "event-conflict": "The event is known with other content",
    "busy": "Too busy to take this now",
    "unavailable": "This cannot be stored now",
    "invalid-request": "The request is not valid",
    "conflict": "The present state does not allow this",
    "idempotency-conflict": "The idempotency key was used for another request",
    "range-not-satisfiable": "The range lies outside of the bytes",
    "gone": "This is no longer there",
    "internal": "Something broke on our side",
}


@dataclass(frozen=True, slots=True)
class Problem:
    """One error. ``kind`` is a key of ``TITLES`` and the ``type`` that clients may rely on."""

    status: int
    kind: str
    detail: str = ""
    more: Mapping[str, Any] = field(default_factory=dict)

    @property
    def body(self) -> bytes:
        """The JSON document."""
        told = {"type": self.kind, "title": TITLES[self.kind], "status": self.status}
        if self.detail:
            told["detail"] = self.detail
        return msgspec.json.encode(told | dict(self.more))

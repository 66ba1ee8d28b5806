"""A source that sends: signed anew at each attempt, again until it is answered for good."""

from __future__ import annotations

import hashlib
import threading
from dataclasses import dataclass, replace
from typing import Any

import httpx

from app.cli.demo.journal import Journal
from app.clock import Clock
from domain import profiles
from domain.profiles import Refused, Source, SourceEvent
from domain.schemes import Request, raw

_TIMEOUT_S = 20.0
_FIRST_WAIT_S, _LONGEST_WAIT_S = 0.1, 2.0
_MAX_ATTEMPTS = 200
_SEED_BYTES = 32
_LATER = frozenset({408, 425, 429})


@dataclass(frozen=True, slots=True)
class Answer:
    """The answer to a delivery. Status 0: nobody answered, or (final) it could not be made."""

    status: int
    body: dict[str, Any]
    attempts: int = 1
    reason: str = ""
    is_final: bool = False

    @property
    def receipt_id(self) -> str:
        """The receipt that was given, or ""."""
        receipt = self.body.get("receipt")
        found = receipt.get("id") if isinstance(receipt, dict) else ""
        return found if isinstance(found, str) else ""


class Sender:
    """Sends as one source does, to its hook, and writes down each attempt with its answer.

    ``signed_url`` is the hook's address as the source knows it, where that is another one.
    """

    def __init__(
        self,
        source: Source,
        hook_url: str,
        *,
        clock: Clock,
        journal: Journal | None = None,
        signed_url: str = "",
    ) -> None:
        self._source, self._clock, self._journal = source, clock, journal
        self._hook_url, self._signed_url = hook_url, signed_url or hook_url
        self._client = httpx.Client(timeout=_TIMEOUT_S, trust_env=False)
        self._closing = threading.Event()

    def close(self) -> None:
        """Give up what is being tried, and let go of the connections."""
        self._closing.set()
        self._client.close()

    def once(self, event: SourceEvent) -> Answer:
        """One attempt, freshly signed."""
        now = self._clock.now()
        request = profiles.compose(self._source, event, self._signed_url, now, ed25519=ed25519)
        if isinstance(request, Refused):
            return Answer(0, {}, reason=request.reason, is_final=True)
        answer = self._posted(request)
        self._record(event, request, answer)
        return answer

    def _posted(self, request: Request) -> Answer:
        url = f"{self._hook_url}?{request.query}" if request.query else self._hook_url
        headers = [(name.encode("latin-1"), raw(value)) for name, value in request.headers]
        try:
            found = self._client.post(url, content=request.body, headers=headers)
        except httpx.HTTPError as error:
            return Answer(0, {}, reason=type(error).__name__)
        status = found.status_code
        is_final = 200 <= status < 500 and status not in _LATER
        return Answer(status, _data(found), is_final=is_final)

    def until_answered(self, event: SourceEvent) -> Answer:
        """Attempts until one is answered with success or for ever, as real sources make them."""
        wait_s = _FIRST_WAIT_S
        answer = Answer(0, {})
        for attempt in range(1, _MAX_ATTEMPTS + 1):
            answer = replace(self.once(event), attempts=attempt)
            if answer.is_final or self._clock.wait(self._closing, wait_s):
                return answer
            wait_s = min(wait_s * 2, _LONGEST_WAIT_S)
        return answer

    def _record(self, event: SourceEvent, request: Request, answer: Answer) -> None:
        if self._journal:
            self._journal.write(
                {
                    "kind": "delivery",
                    "at": self._clock.now().isoformat(),
                    "event_id": event.event_id,
                    "file_id": event.file_id,
                    "version": event.version,
                    "body_sha256": hashlib.sha256(request.body).hexdigest(),
                    "status": answer.status,
                    "receipt": answer.receipt_id,
                }
            )


def ed25519(key: bytes, message: bytes) -> bytes:
    """Sign as sources with a private key do."""
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    return Ed25519PrivateKey.from_private_bytes(key[:_SEED_BYTES]).sign(message)


def _data(response: httpx.Response) -> dict[str, Any]:
    try:
        found = response.json()
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}

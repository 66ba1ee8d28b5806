"""Reading a receiver's answer: bounded, its secrets hidden, its meaning judged."""

from __future__ import annotations

import json
import re
from base64 import b64encode
from collections.abc import Iterator
from dataclasses import dataclass
from urllib.parse import parse_qsl, quote, unquote, urlsplit

from domain.canonical import ABSENT, pointer
from jobs.notify.values import NotifySettings
from jobs.tools import Answer, Header, Poured, Timing

READ_BYTES = 65_536
KEPT_BYTES = 4096
_KEPT_HEADERS = 50
_KEPT_HEADER_CHARS = 1024
_REFERENCE_CHARS = 200
_HIDDEN = re.compile(r"cookie|auth|token|secret|key|signature|password|session", re.IGNORECASE)
# It names the message, for all that its own name says.
_OPEN = frozenset({"idempotency-key"})
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]")
_BLANKED = "***"
_SHORTEST_SECRET = 6


@dataclass(frozen=True, slots=True)
class Reply:
    """An answer as far as it was read."""

    status: int
    headers: tuple[Header, ...]
    body: bytes
    ended: Poured
    timing: Timing


def read(answer: Answer) -> Reply:
    """Read at most 64 KiB of the body."""
    body = bytearray()
    ended = answer.pour(body.extend, limit_bytes=READ_BYTES)
    return Reply(answer.status, answer.headers, bytes(body), ended, answer.timing)


def kept_headers(headers: tuple[Header, ...], secrets: tuple[str, ...]) -> tuple[Header, ...]:
    """The headers of either side as people may see them."""
    return tuple(
        (name, _BLANKED if _is_hidden(name) else blanked(value, secrets)[:_KEPT_HEADER_CHARS])
        for name, value in headers[:_KEPT_HEADERS]
    )


def _is_hidden(name: str) -> bool:
    return name.lower() not in _OPEN and _HIDDEN.search(name) is not None


def kept_body(reply: Reply, secrets: tuple[str, ...]) -> str:
    """The first 4 KiB of the body as text, fit for any database and screen."""
    # Blanked before it is cut: a secret across the cut would leave its beginning.
    text = blanked(reply.body.decode(errors="replace"), secrets)
    return text.encode()[:KEPT_BYTES].decode(errors="ignore")


def blanked(text: str, secrets: tuple[str, ...]) -> str:
    """Without our secrets, should a receiver echo them, and without control characters."""
    for secret in secrets:
        text = text.replace(secret, _BLANKED)
    return _CONTROL.sub("\N{REPLACEMENT CHARACTER}", text)


def secrets_in(headers: tuple[Header, ...]) -> tuple[str, ...]:
    """The values, and the words in them, that must not be kept; the longest first."""
    words = {word for _, value in headers for word in (value, *value.split())}
    return tuple(sorted((w for w in words if len(w) >= _SHORTEST_SECRET), key=len, reverse=True))


def own_secrets(settings: NotifySettings) -> tuple[str, ...]:
    """What a destination's settings themselves hold that a receiver may say back.

    Headers whose name says so, and what an address proves itself with: its query and its password.
    """
    hidden = tuple(header for header in settings.headers if _is_hidden(header[0]))
    addresses = (settings.url, settings.ask_url, settings.target.proxy)
    words = {word for address in addresses for word in _proofs_in(address)}
    long = (word for word in words if len(word) >= _SHORTEST_SECRET)
    return (*secrets_in(hidden), *sorted(long, key=len, reverse=True))


def _proofs_in(address: str) -> Iterator[str]:
    parts = urlsplit(address)
    yield parts.query
    for name, value in parse_qsl(parts.query, keep_blank_values=True):
        yield from (value or name, quote(value or name, safe=""))
    if parts.password:
        user, password = unquote(parts.username or ""), unquote(parts.password)
        yield from (parts.password, password, b64encode(f"{user}:{password}".encode()).decode())


def is_status(status: int, patterns: tuple[str, ...]) -> bool:
    """Whether a status matches one of "2xx", "204"."""
    text = str(status)
    return any(
        len(p) == len(text) and all(a in {b, "x"} for a, b in zip(p.lower(), text, strict=True))
        for p in patterns
    )


def is_confirmed(reply: Reply, settings: NotifySettings) -> bool:
    """Whether the body says what the destination's check demands; without a check, yes."""
    if not settings.delivered_pointer:
        return True
    found = _found(reply.body, settings.delivered_pointer)
    wanted = settings.delivered_equals
    # Python holds true and 1 for equal, JSON does not.
    return isinstance(found, bool) == isinstance(wanted, bool) and found == wanted


def reference(reply: Reply, settings: NotifySettings) -> str:
    """The receiver's own id in its answer; "" if there is none."""
    place = settings.reference
    if place.startswith("header:"):
        wanted = place.removeprefix("header:").strip().lower()
        found: object = next((value for name, value in reply.headers if name == wanted), "")
    else:
        found = _found(reply.body, place) if place else ""
    is_id = isinstance(found, str | int) and not isinstance(found, bool)
    return _CONTROL.sub("", str(found))[:_REFERENCE_CHARS] if is_id else ""


def _found(body: bytes, path: str) -> object:
    try:
        found = pointer(json.loads(body), path)
    except (ValueError, RecursionError):
        return ABSENT
    return found

"""Signatures over the bytes that arrived: verifying them, and making them.

Reasons are words for the operator; they hold no secret, no signature and no body.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import UTC, datetime

from domain import instants
from domain.schemes import (
    NO_PRIMITIVES,
    STANDARD_SCHEME,
    Clock,
    InvalidSecret,
    Key,
    Primitives,
    Request,
    Scheme,
    TimeForm,
    load_key,
    raw,
)

__all__ = [
    "NO_PRIMITIVES",
    "STANDARD_SCHEME",
    "Clock",
    "InvalidSecret",
    "Key",
    "Primitives",
    "Refused",
    "Request",
    "Scheme",
    "Signed",
    "Verified",
    "load_key",
    "sign",
    "standard_headers",
    "verify",
]

_MAX_SIGNATURES = 128
_ED25519_SIGNATURE_BYTES = 64
_MAX_STAMP_DIGITS = 14


@dataclass(frozen=True, slots=True)
class Verified:
    """Proven by the key with this id; ``signed_at`` is the signed time where there is one."""

    key_id: str
    signed_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Refused:
    """Not proven; ``reason`` is for operators and never for the sender."""

    reason: str


@dataclass(frozen=True, slots=True)
class Signed:
    """What to add to a request so that its receiver can prove it."""

    headers: tuple[tuple[str, str], ...]
    query: tuple[tuple[str, str], ...] = ()


def verify(
    scheme: Scheme,
    request: Request,
    keys: tuple[Key, ...],
    now: datetime,
    primitives: Primitives = NO_PRIMITIVES,
) -> Verified | Refused:
    """Judge the raw request under every key; comparison takes the same time wherever it fails."""
    if not keys:
        return Refused("no secret is configured for the source")
    for name, wanted in scheme.required:
        if (request.header(name) or "") != wanted:
            return Refused(f"header {name} is missing or not {wanted}")
    signatures = entries(scheme, request)
    if isinstance(signatures, Refused):
        return signatures
    stamp = _stamp(scheme, request)
    if isinstance(stamp, Refused):
        return stamp
    at = _signed_at(scheme.clock, stamp, now)
    if isinstance(at, Refused):
        return at
    message = _content(scheme, request, stamp)
    if isinstance(message, Refused):
        return message
    found = _matching(scheme, signatures, keys, message, primitives)
    return found if isinstance(found, Refused) else Verified(found.id, at)


def entries(scheme: Scheme, request: Request) -> tuple[str, ...] | Refused:
    """The signatures that came, without label filter, in the order they came."""
    values = [value for place in scheme.places for value in _values(place, request)]
    if not values:
        return Refused(f"signature missing: {_named(scheme.places)}")
    if not scheme.separator:
        return tuple(values[:_MAX_SIGNATURES])
    split = [entry.strip(" ") for value in values for entry in value.split(scheme.separator)]
    if len(split) > _MAX_SIGNATURES:
        return Refused("too many signatures")
    return tuple(split)


def _values(place: str, request: Request) -> list[str]:
    kind, _, name = place.partition(":")
    name = name.lower() if kind == "header" else name
    if kind == "query":
        value = request.parameter(name)
    elif name.endswith("-*"):
        stem = name[:-1]
        return [v for k, v in request.headers if k.startswith(stem) and k[len(stem) :].isdecimal()]
    else:
        value = request.header(name)
    return [value] if value else []


def _named(places: Iterable[str]) -> str:
    return " or ".join(place.replace(":", " ", 1) for place in places)


def _stamp(scheme: Scheme, request: Request) -> str | Refused:
    clock = scheme.clock
    if clock is None:
        return ""
    if not clock.entry:
        value = request.header(clock.header)
        return value or Refused(f"timestamp missing: header {clock.header}")
    found = entries(scheme, request)
    stamps = [] if isinstance(found, Refused) else [e for e in found if e.startswith(clock.entry)]
    if len(stamps) != 1:
        return Refused(f"the signature header needs exactly one {clock.entry}")
    return stamps[0][len(clock.entry) :]


def _signed_at(clock: Clock | None, stamp: str, now: datetime) -> datetime | Refused | None:
    if clock is None:
        return None
    at = _read_stamp(stamp, clock.form)
    if at is None:
        return Refused("the timestamp is not in the source's form")
    off_s = (now - at).total_seconds()
    if clock.past_s is not None and off_s > clock.past_s:
        return Refused(f"clock off by {off_s:.0f} s: older than the {clock.past_s:.0f} s allowed")
    if clock.future_s is not None and -off_s > clock.future_s:
        return Refused(f"clock off by {off_s:.0f} s: ahead of the {clock.future_s:.0f} s allowed")
    return at


def _read_stamp(stamp: str, form: TimeForm) -> datetime | None:
    if form == "rfc3339":
        return instants.from_text(stamp)
    if form == "any":
        return instants.from_digits(stamp) or instants.from_text(stamp)
    if (
        form == "unix_ms"
        and stamp.isascii()
        and stamp.isdecimal()
        and len(stamp) <= _MAX_STAMP_DIGITS
    ):
        return datetime.fromtimestamp(int(stamp) / 1000, UTC)
    return instants.from_digits(stamp) if form == "unix" else None


def _content(scheme: Scheme, request: Request, stamp: str) -> bytes | Refused:
    if scheme.content is not None:
        found = scheme.content(request)
        return Refused("the signed content is not complete") if found is None else found
    pieces: list[bytes] = []
    for number, (kind, text) in enumerate(scheme.parts):
        if kind == "literal":
            pieces.append(text.encode())
            continue
        value = _value(request, text, stamp)
        if value is None:
            return Refused(f"signed {text.replace(':', ' ')} is missing or came twice")
        if text.startswith("header:") and _is_ambiguous(scheme, number, value):
            return Refused(f"signed {text.replace(':', ' ')} contains the separator")
        pieces.append(value)
    return b"".join(pieces)


def _value(request: Request, text: str, stamp: str) -> bytes | None:
    if text == "body":
        return request.body
    if text == "timestamp":
        return raw(stamp)
    if text.startswith("header:"):
        value = request.header(text[len("header:") :].lower())
        return None if value is None else raw(value)
    values = {"method": request.method, "url": request.url, "path": request.path}
    return raw(values.get(text, request.query))


def _is_ambiguous(scheme: Scheme, number: int, value: bytes) -> bool:
    # "a.b" before "." could also be "a" before ".b...": two requests would have one signature.
    # A time in a strict form cannot be shifted in that way.
    if number + 1 == len(scheme.parts) or scheme.parts[number + 1][0] != "literal":
        return False
    is_time = scheme.clock and scheme.parts[number][1][7:].lower() == scheme.clock.header
    return not is_time and scheme.parts[number + 1][1].encode() in value


def _matching(
    scheme: Scheme,
    signatures: tuple[str, ...],
    keys: tuple[Key, ...],
    message: bytes,
    primitives: Primitives,
) -> Key | Refused:
    labelled = [raw(s[len(scheme.prefix) :]) for s in signatures if s.startswith(scheme.prefix)]
    is_paired = scheme.is_paired and len(keys) == len(labelled) == len(scheme.places)
    for number, key in enumerate(keys):
        if key.kind == "public":
            if _is_public_match(scheme, signatures, key, message, primitives):
                return key
        elif key.kind == "secret":
            wanted = expected(scheme, key, message)
            candidates = labelled[number : number + 1] if is_paired else labelled
            if any(hmac.compare_digest(wanted, candidate) for candidate in candidates):
                return key
    if not labelled and not scheme.public_prefix:
        return Refused(f'no signature is labelled "{scheme.prefix}"')
    return Refused("no signature matches: other bytes were signed, or another secret was used")


def expected(scheme: Scheme, key: Key, message: bytes) -> bytes:
    """The signature's text, without its label, that this key makes over these bytes."""
    if scheme.method == "token":
        return key.material
    if scheme.method == "suffix":
        digest = hashlib.new(scheme.hash, message + key.material).digest()
    else:
        # Not hmac.digest: it lets go of the interpreter even for a few bytes, and waits for it.
        digest = hmac.new(key.material, message, scheme.hash).digest()
    return digest.hex().encode() if scheme.encoding == "hex" else base64.b64encode(digest)


def _is_public_match(
    scheme: Scheme,
    signatures: tuple[str, ...],
    key: Key,
    message: bytes,
    primitives: Primitives,
) -> bool:
    if primitives.ed25519 is None or not scheme.public_prefix:
        return False
    for entry in signatures:
        if not entry.startswith(scheme.public_prefix):
            continue
        signature = _strict_base64(entry[len(scheme.public_prefix) :])
        is_whole = len(signature) == _ED25519_SIGNATURE_BYTES
        if is_whole and primitives.ed25519(key.material, signature, message):
            return True
    return False


def _strict_base64(text: str) -> bytes:
    try:
        decoded = base64.b64decode(raw(text), validate=True)
    except ValueError:
        return b""
    return decoded if base64.b64encode(decoded) == raw(text) else b""


SignWith = Callable[[bytes, bytes], bytes]


def sign(
    scheme: Scheme,
    request: Request,
    keys: tuple[Key, ...],
    now: datetime,
    ed25519: SignWith | None = None,
) -> Signed | Refused:
    """The headers with which this request proves itself; ids that are signed must be in it.

    Every key signs where the scheme has room for several, else only the first.
    ``ed25519(private key, message)`` gives a signature.
    """
    stamp = _written(now, scheme.clock.form) if scheme.clock else ""
    added = list(scheme.required)
    if scheme.clock and scheme.clock.header:
        added.append((scheme.clock.header, stamp))
    request = _with_headers(request, added)
    message = _content(scheme, request, stamp)
    if isinstance(message, Refused):
        return message
    if any(key.kind == "private" for key in keys) and ed25519 is None:
        return Refused("no Ed25519 is at hand")
    labelled = [_labelled(scheme, key, message, ed25519) for key in keys if key.kind != "public"]
    if not labelled:
        return Refused("no secret is configured to sign with")
    placed = _placed(scheme, labelled, stamp)
    headers = [(name, text) for kind, name, text in placed if kind == "header"]
    query = tuple((name, text) for kind, name, text in placed if kind == "query")
    return Signed((*added, *headers), query)


def standard_headers(
    message_id: str,
    body: bytes,
    keys: tuple[Key, ...],
    now: datetime,
    ed25519: SignWith | None = None,
) -> tuple[tuple[str, str], ...] | Refused:
    """The three headers of Standard Webhooks; every key signs: ``whsec_`` as v1, ``whsk_`` v1a."""
    request = Request("POST", "", "", "", (("webhook-id", message_id),), body)
    signed = sign(STANDARD_SCHEME, request, keys, now, ed25519)
    if isinstance(signed, Refused):
        return signed
    return (("webhook-id", message_id), *signed.headers)


def _with_headers(request: Request, added: list[tuple[str, str]]) -> Request:
    names = {name for name, _ in added}
    kept = tuple(pair for pair in request.headers if pair[0] not in names)
    return Request(
        method=request.method,
        url=request.url,
        path=request.path,
        query=request.query,
        headers=(*kept, *added),
        body=request.body,
    )


def _labelled(scheme: Scheme, key: Key, message: bytes, ed25519: SignWith | None) -> str:
    if key.kind == "private" and ed25519 is not None:
        signature = ed25519(key.material, message)
        return scheme.public_prefix + base64.b64encode(signature).decode()
    return scheme.prefix + expected(scheme, key, message).decode("latin-1")


def _placed(scheme: Scheme, labelled: list[str], stamp: str) -> list[tuple[str, str, str]]:
    places = [_lowered(place).partition(":") for place in scheme.places]
    kind, _, name = places[0]
    if name.endswith("-*"):
        return [(kind, f"{name[:-1]}{n}", text) for n, text in enumerate(labelled, start=1)]
    if scheme.separator:
        times = [scheme.clock.entry + stamp] if scheme.clock and scheme.clock.entry else []
        return [(kind, name, scheme.separator.join((*times, *labelled)))]
    return [(kind, name, text) for (kind, _, name), text in zip(places, labelled, strict=False)]


def _lowered(place: str) -> str:
    return place.lower() if place.startswith("header:") else place


def _written(now: datetime, form: TimeForm) -> str:
    if form == "rfc3339":
        return now.astimezone(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
    if form == "unix_ms":
        return str(int(now.timestamp() * 1000))
    return str(int(now.timestamp()))

"""The hash chain over the log, and the salted commitments to what can be erased.

Every hash is over a named purpose and length-framed parts, so no value of one purpose can be
passed off as another, and no two lists of parts have the same bytes.
"""

from __future__ import annotations

import hashlib

from domain import canonical
from domain.strict_json import JsonValue

_LENGTH_BYTES = 8


def framed(purpose: bytes, *parts: bytes) -> bytes:
    """The parts with their lengths before them, under a purpose: what every hash is made over."""
    return b"".join(len(part).to_bytes(_LENGTH_BYTES, "big") + part for part in (purpose, *parts))


GENESIS = hashlib.sha256(framed(b"laufzettel.genesis.1")).digest()
_LINK_PREFIX = framed(b"laufzettel.chain.1")


def link(previous: bytes, body: bytes) -> bytes:
    """The hash of an event's stored bytes that also fixes everything before it."""
    lengths = len(previous).to_bytes(_LENGTH_BYTES, "big"), len(body).to_bytes(_LENGTH_BYTES, "big")
    whole = b"".join((_LINK_PREFIX, lengths[0], previous, lengths[1], body))
    return hashlib.sha256(whole).digest()


def commitment(salt: bytes, path: str, value: JsonValue) -> str:
    """Binds an event to a private value in hex; without the salt it gives nothing away."""
    parts = framed(b"laufzettel.commitment.1", salt, path.encode(), canonical.encode(value))
    return hashlib.sha256(parts).hexdigest()

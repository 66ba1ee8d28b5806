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
# Written out below instead of framed anew: every event is hashed once, and five times for its
# private values.
_LINK_PREFIX = framed(b"laufzettel.chain.1")
_COMMITMENT_PREFIX = framed(b"laufzettel.commitment.1")


def link(previous: bytes, body: bytes) -> bytes:
    """The hash of an event's stored bytes that also fixes everything before it."""
    parts = _LINK_PREFIX, _length(previous), previous, _length(body), body
    return hashlib.sha256(b"".join(parts)).digest()


def commitment(salt: bytes, path: str, value: JsonValue) -> str:
    """Binds an event to a private value in hex; without the salt it gives nothing away."""
    name, data = path.encode(), canonical.encode(value)
    parts = _COMMITMENT_PREFIX, _length(salt), salt, _length(name), name, _length(data), data
    return hashlib.sha256(b"".join(parts)).hexdigest()


def _length(part: bytes) -> bytes:
    return len(part).to_bytes(_LENGTH_BYTES, "big")

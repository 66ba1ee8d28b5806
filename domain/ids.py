"""Derived ids: what a job, message or artifact is about, hashed under the installation's key.

To create something again is to find it: the same parts give the same id for ever, on every
machine and after a restore. Nothing that may have to be forgotten can be read back from an id.
"""

from __future__ import annotations

import hashlib
import hmac
from functools import lru_cache
from typing import Literal

Kind = Literal["fil", "evt", "job", "msg", "art", "rcp", "dlv", "cmp"]

# 26 characters of base32 carry 130 bits: enough that two of them never meet by chance.
ID_LENGTH = 26
_USED_BYTES = 17
_SPARE_BITS = _USED_BYTES * 8 - ID_LENGTH * 5
_ALPHABET = "abcdefghijklmnopqrstuvwxyz234567"
# Two characters at a time from a table: every delivery and job derives several ids, and the
# standard library's encoder takes as long as the hash.
_PAIRS = [first + second for first in _ALPHABET for second in _ALPHABET]
_SHIFTS = range((ID_LENGTH - 2) * 5, -1, -10)


def derive(key: bytes, kind: Kind, *parts: str) -> str:
    """The id of the thing of this kind that these parts name.

    Parts are framed by their length, so ("a", "bc") and ("ab", "c") differ.
    """
    message = b"".join(_framed(part) for part in (kind, *parts))
    keyed = _keyed(key).copy()
    keyed.update(message)
    digest = keyed.digest()
    bits = int.from_bytes(digest[:_USED_BYTES], "big") >> _SPARE_BITS
    return f"{kind}_{''.join([_PAIRS[bits >> shift & 1023] for shift in _SHIFTS])}"


# A copy of a keyed state costs less than keying, and unlike ``hmac.digest`` it does not let go of
# the interpreter, which under load takes milliseconds to come back.
@lru_cache(maxsize=8)
def _keyed(key: bytes) -> hmac.HMAC:
    return hmac.new(key, digestmod=hashlib.sha256)


def _framed(part: str) -> bytes:
    data = part.encode("utf-8", "surrogatepass")
    return len(data).to_bytes(4, "big") + data

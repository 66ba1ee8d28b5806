"""The signature of Standard Webhooks, version 1: HMAC-SHA256, one for each secret."""

from __future__ import annotations

import hmac
from base64 import b64encode
from hashlib import sha256

from jobs.notify.values import Sign


def signed_v1(*keys: bytes) -> Sign:
    """Sign with each key, the newest first: during a change receivers accept old or new."""

    def sign(message_id: str, at_s: int, body: bytes) -> str:
        content = f"{message_id}.{at_s}.".encode() + body
        digests = (hmac.new(key, content, sha256).digest() for key in keys)
        return " ".join(f"v1,{b64encode(digest).decode()}" for digest in digests)

    return sign

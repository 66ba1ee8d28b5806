"""A signed message such as those written by hand send: Standard Webhooks over a small body."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import time
from typing import Any

from tests.benchmarks.deliveries import KEY


def message_about(file_id: str, digest: str) -> dict[str, Any]:
    """What ``httpx`` takes to send it."""
    body = json.dumps(
        {"type": "file.version.completed", "data": {"file_id": file_id, "sha256": digest}}
    ).encode()
    stamp, number = str(int(time.time())), f"msg_{file_id}"
    signed = f"{number}.{stamp}.".encode() + body
    signature = base64.b64encode(hmac.new(KEY, signed, hashlib.sha256).digest()).decode()
    return {
        "content": body,
        "headers": {
            "webhook-id": number,
            "webhook-timestamp": stamp,
            "webhook-signature": f"v1,{signature}",
            "content-type": "application/json",
        },
    }

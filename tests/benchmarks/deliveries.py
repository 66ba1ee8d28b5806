"""Signed deliveries as a source sends them, made before the clock starts."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import time
from dataclasses import dataclass

KEY = b"k" * 32
SECRET = "whsec_" + base64.b64encode(KEY).decode()
SOURCE = "contracts"


@dataclass(frozen=True, slots=True)
class Wish:
    """So many deliveries about as many files; ``prefix`` makes them new ones."""

    count: int
    prefix: str
    documents: str = "127.0.0.1:9"


def requests(wish: Wish) -> list[bytes]:
    """Whole HTTP requests."""
    return [request(f"{wish.prefix}-{number}", wish.documents) for number in range(wish.count)]


def request(file_id: str, documents: str) -> bytes:
    """One delivery about the first version of one file."""
    body = json.dumps(
        {
            "type": "file.version.created",
            "timestamp": "2026-11-30T10:00:00Z",
            "data": {
                "file_id": file_id,
                "version": 1,
                "sequence": 1,
                "name": f"invoice {file_id}.pdf",
                "project": "P-9",
                "media_type": "application/pdf",
                "download_url": f"http://{documents}/files/{file_id}",
            },
        }
    ).encode()
    stamp = str(int(time.time()))
    signed = f"evt-{file_id}.{stamp}.".encode() + body
    signature = base64.b64encode(hmac.new(KEY, signed, hashlib.sha256).digest()).decode()
    head = (
        f"POST /hooks/{SOURCE} HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-type: application/json\r\n"
        f"webhook-id: evt-{file_id}\r\nwebhook-timestamp: {stamp}\r\n"
        f"webhook-signature: v1,{signature}\r\ncontent-length: {len(body)}\r\n\r\n"
    )
    return head.encode() + body

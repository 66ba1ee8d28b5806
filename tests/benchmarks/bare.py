"""What acceptance is measured against: the same server, the same signature, nothing stored.

Run as a process; it prints its port and serves until its input ends.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import os
import sys
import time
from typing import Any, cast

from app.clock import SystemClock
from app.web import Web
from app.web.server import Place, WebServer
from tests.benchmarks.deliveries import KEY

_BODY = b'{"status":"accepted","event_id":"%s"}' % (b"x" * 120)
_HEADERS = [(b"content-type", b"application/json"), (b"content-length", str(len(_BODY)).encode())]
_TOLERANCE_S = 300


class Bare:
    """Reads the body, verifies the signature and the time over the raw bytes, answers."""

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "http":
            return await self._live(receive, send)
        headers = dict(scope["headers"])
        body = b""
        while True:
            message = await receive()
            body += message.get("body", b"")
            if not message.get("more_body", False):
                break
        status = 202 if is_signed(headers, body) else 401
        await send({"type": "http.response.start", "status": status, "headers": _HEADERS})
        await send({"type": "http.response.body", "body": _BODY})
        return None

    async def _live(self, receive: Any, send: Any) -> None:
        while True:
            message = await receive()
            await send({"type": f"{message['type']}.complete"})
            if message["type"] == "lifespan.shutdown":
                return


def is_signed(headers: dict[bytes, bytes], body: bytes) -> bool:
    """Whether a delivery has the signature and the time that it should have."""
    stamp = headers[b"webhook-timestamp"]
    if abs(time.time() - int(stamp)) > _TOLERANCE_S:
        return False
    signed = b".".join((headers[b"webhook-id"], stamp, body))
    wanted = base64.b64encode(hmac.new(KEY, signed, hashlib.sha256).digest())
    return hmac.compare_digest(headers[b"webhook-signature"], b"v1," + wanted)


def serve(app: Any) -> None:
    """Print the port and serve an ASGI application until the input ends."""
    server = WebServer(cast("Web", app), Place("127.0.0.1", 0), SystemClock())
    server.start()
    print(server.port, flush=True)
    sys.stdin.read()
    # Idle connections keep the server's own threads, which do not survive the interpreter's end.
    os._exit(0)


def main() -> None:
    serve(Bare())


if __name__ == "__main__":
    main()

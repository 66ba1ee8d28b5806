"""The same flow as one would write it by hand: FastAPI, dramatiq and Valkey, nothing stored.

What is accepted lies in the broker alone, what is done is written down nowhere, and a second
delivery is done a second time: this is what durability and idempotency are measured against.
Run as a process: ``web BROKER RECEIVER`` prints its port; ``worker BROKER RECEIVER`` does the work.
"""

from __future__ import annotations

import hashlib
import os
import sys
import tempfile
from pathlib import Path
from typing import Any

import dramatiq
import httpx
from dramatiq.brokers.redis import RedisBroker
from fastapi import FastAPI, Request, Response

from tests.benchmarks.bare import is_signed, serve
from tests.benchmarks.notices import message_about

_THREADS = 8


def build(broker_url: str, receiver: str) -> tuple[Any, Any, Any]:
    """The broker, the one actor, and the application."""
    broker = RedisBroker(url=broker_url)  # type: ignore[no-untyped-call]
    dramatiq.set_broker(broker)
    client = httpx.Client(timeout=10)
    folder = Path(tempfile.mkdtemp(prefix="handwritten-"))

    @dramatiq.actor(broker=broker)
    def process(event: dict[str, Any]) -> None:
        data = event["data"]
        digest, target = hashlib.sha256(), folder / data["file_id"]
        with client.stream("GET", data["download_url"]) as answer, target.open("wb") as file:
            for piece in answer.iter_bytes():
                digest.update(piece)
                file.write(piece)
        told = message_about(data["file_id"], digest.hexdigest())
        client.post(receiver, **told).raise_for_status()

    app = FastAPI()

    @app.post("/hooks/{source}")
    async def accept(source: str, request: Request) -> Response:
        body = await request.body()
        if not is_signed(dict(request.scope["headers"]), body):
            return Response(status_code=401)
        process.send(await request.json())
        return Response(status_code=202)

    return broker, process, app


def main() -> None:
    role, broker_url, receiver = sys.argv[1:]
    broker, _, app = build(broker_url, receiver)
    if role == "web":
        serve(app)
    else:
        worker = dramatiq.Worker(broker, worker_threads=_THREADS)
        worker.start()
        print(0, flush=True)
        sys.stdin.read()
        os._exit(0)


if __name__ == "__main__":
    main()

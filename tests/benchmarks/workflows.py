"""The same flow on a library of durable workflows: DBOS, its state in PostgreSQL.

Run as a process: ``DATABASE RECEIVER``; it prints its port.
"""

from __future__ import annotations

import hashlib
import sys
import tempfile
from pathlib import Path
from typing import Any

import httpx
from dbos import DBOS, DBOSConfig, Queue, SetWorkflowID
from fastapi import FastAPI, Request, Response

from tests.benchmarks.bare import is_signed, serve
from tests.benchmarks.notices import message_about

_AT_ONCE = 16
_client = httpx.Client(timeout=10)
_folder = Path(tempfile.mkdtemp(prefix="workflows-"))


@DBOS.step()
def download(file_id: str, url: str) -> str:
    """Fetch the file; gives its path."""
    target = _folder / file_id
    with _client.stream("GET", url) as answer, target.open("wb") as file:
        for piece in answer.iter_bytes():
            file.write(piece)
    return str(target)


@DBOS.step()
def checksum(path: str) -> str:
    """The digest of the file."""
    return hashlib.sha256(Path(path).read_bytes()).hexdigest()


@DBOS.step()
def notify(receiver: str, file_id: str, digest: str) -> None:
    """Tell the receiver."""
    _client.post(receiver, **message_about(file_id, digest)).raise_for_status()


@DBOS.workflow()
def process(receiver: str, data: dict[str, Any]) -> None:
    """Download, transform, notify: each step recorded."""
    path = download(data["file_id"], data["download_url"])
    notify(receiver, data["file_id"], checksum(path))


def build(receiver: str, files: Queue) -> FastAPI:
    """The application: a workflow for each delivery, under the event's own id."""
    app = FastAPI()

    @app.post("/hooks/{source}")
    async def accept(source: str, request: Request) -> Response:
        body = await request.body()
        if not is_signed(dict(request.scope["headers"]), body):
            return Response(status_code=401)
        with SetWorkflowID(request.headers["webhook-id"]):
            await files.enqueue_async(process, receiver, (await request.json())["data"])
        return Response(status_code=202)

    return app


def main() -> None:
    database, receiver = sys.argv[1:]
    config: DBOSConfig = {
        "name": "benchmark",
        "system_database_url": database,
        "log_level": "ERROR",
    }
    DBOS(config=config)
    DBOS.launch()
    files = DBOS.register_queue("files", worker_concurrency=_AT_ONCE, polling_interval_sec=0.05)
    serve(build(receiver, files))


if __name__ == "__main__":
    main()

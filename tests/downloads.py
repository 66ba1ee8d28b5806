"""Downloads from a real server that a test programs: what went in, what must be left behind."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

from domain.outcomes import Again, Dead, Done
from jobs.download import Downloaded, DownloadJob, download
from jobs.outbound import Fixed
from jobs.tools import Tools
from tests.effects import download_job
from tests.servers import Handler, Server, serving

FILES = Path(__file__).parent / "cases/files"
DATA = bytes(range(256)) * 40
SHA = hashlib.sha256(DATA).hexdigest()
TOKEN = Fixed((("authorization", "Bearer tok-secret"),))


def from_server(server: Server, *, path: str = "/f", **fields: Any) -> DownloadJob:
    return download_job(server.url(path), server.host, **fields)


def outcome_of(tools: Tools, handler: Handler, **fields: Any) -> Done[Downloaded] | Again | Dead:
    with serving(handler) as server:
        result = download(from_server(server, **fields), tools)
    assert list(tools.scratch.iterdir()) == [], "a temporary file was left"
    if not isinstance(result, Done):
        assert list(tools.blobs.list()) == [], "something was stored"
    return result


def stored(tools: Tools, result: object) -> bytes:
    assert isinstance(result, Done), result
    return b"".join(tools.blobs.stream(result.result.sha256))

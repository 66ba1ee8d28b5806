"""The whole process killed at its points: the next start ends what was begun, counted outside."""

from __future__ import annotations

import json
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

import httpx
import pytest
from standardwebhooks import Webhook

from tests import runtimes as r
from tests.commands import environment
from tests.crash.zygotes import KILLED, Started, shared_zygote
from tests.servers import Server, answering, closed_port, serving

POINTS = (
    "ledger.commit.before:4",
    "ledger.commit.after:4",
    "ledger.commit.answer_lost:5",
    "runner.claim.after",
    "runner.finish.before",
    "runner.finish.after",
    "blobs.put.after",
    "notify.send.before",
    "notify.send.after",
)


@contextmanager
def started(folder: Path, port: int, **environ: str) -> Iterator[Started]:
    """A process of its own; ended by SIGTERM on leaving, if it still lives."""
    argv = ["run", "-c", str(folder / "laufzettel.toml")]
    order = {"argv": argv, "log": str(folder / "log"), "folder": str(folder)}
    environ = environment(**{"SECRET": r.SECRET, **environ})
    process = shared_zygote().order({**order, "environ": environ})
    try:
        r.until(lambda: process.is_over() or _listens(port))
        yield process
    finally:
        process.ask(signal.SIGTERM)
        process.wait()


def _listens(port: int) -> bool:
    try:
        httpx.options(f"http://127.0.0.1:{port}/hooks/contracts")
    except httpx.TransportError:
        return False
    return True


def delivered(port: int, url: str) -> int:
    """Send the announcement as a source does; gives the status, 0 for no answer."""
    at = datetime.now(UTC)
    body = json.dumps(
        {
            "type": "file.version.created",
            "timestamp": "2026-11-30T10:00:00Z",
            "data": {
                "file_id": "F-1",
                "version": 1,
                "name": "a.bin",
                "media_type": "application/octet-stream",
                "download_url": url,
            },
        }
    )
    headers = {
        "webhook-id": "evt-1",
        "webhook-timestamp": str(int(at.timestamp())),
        "webhook-signature": Webhook(r.SECRET).sign("evt-1", at, body),
    }
    try:
        answer = httpx.post(
            f"http://127.0.0.1:{port}/hooks/contracts", content=body, headers=headers
        )
    except httpx.TransportError:
        return 0
    return answer.status_code


def written(folder: Path, source: Server, erp: Server) -> int:
    """The configuration of a process that is killed; gives the port that it listens on."""
    port = closed_port()
    r.configured(
        folder,
        source=source.host,
        destination=erp.url("/"),
        installation=f'listen = "127.0.0.1:{port}"',
        recipe='transforms = [{ name = "sum", use = "checksum" }]',
    )
    return port


@pytest.mark.req("D1")
@pytest.mark.req("E2")
@pytest.mark.req("F10")
@pytest.mark.parametrize("point", POINTS)
def test_killed_at_a_point_the_next_start_ends_what_was_begun(tmp_path: Path, point: str) -> None:
    with serving(answering(200, b"x" * 5000)) as source, serving(answering(204)) as erp:
        port = written(tmp_path, source, erp)
        armed = {"LAUFZETTEL_SCRATCH": str(tmp_path), "LAUFZETTEL_POINT": point}
        with started(tmp_path, port, **armed) as process:
            first = delivered(port, source.url("/f"))
            assert process.wait() == KILLED, (tmp_path / "log").read_text()
        with started(tmp_path, port) as process:
            again = delivered(port, source.url("/f"))
            r.until(lambda: erp.requests)
            r.until(lambda: _is_drained(tmp_path))
        assert process.code == 0
    assert (first, again) in {(202, 200), (0, 200), (0, 202)}
    assert len({request.header("webhook-id") for request in erp.requests}) == 1
    assert len({request.body for request in erp.requests}) == 1
    assert len(erp.requests) <= 2
    blobs = [p for p in (tmp_path / "artifacts").rglob("*") if p.is_file() and len(p.name) == 64]
    assert len(blobs) == 2


def _is_drained(folder: Path) -> bool:
    lines = [json.loads(line) for line in (folder / "log").read_text().splitlines()]
    sent = [line for line in lines if line["event"] == "message.sent"]
    return bool(sent) and sent[-1]["outcome"] == "done"

"""Killed anywhere inside an effect and run again: one blob, one message id, nothing left over."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from app.artifacts import open_blobs, open_scratch
from tests.servers import Peer, Received, Server, serving

ROOT = Path(__file__).parents[2]
DATA = bytes(range(256)) * 300
POINTS = (
    "outbound.connect.before",
    "outbound.connect.after",
    "download.request.before",
    "download.request.after",
    "download.body.begun",
    "download.body.after",
    "blobs.put.before",
    "blobs.fsync.after",
    "blobs.put.after",
    "notify.send.before",
    "notify.send.after",
)

WORK = """
import json, sys
from pathlib import Path
from app.artifacts import open_blobs, open_scratch
from app.clock import SystemClock
from domain.outcomes import Done
from jobs.download import DownloadJob, DownloadSettings, download
from jobs.notify import NotifyJob, NotifySettings, notify, signer
from jobs.outbound import Outbound
from jobs.tools import Target, Tools

folder, host = Path(sys.argv[1]), sys.argv[2]
scratch = open_scratch(folder / "scratch")
with Outbound(clock=SystemClock()) as http, scratch.folder() as own:
    tools = Tools(http, open_blobs(f"file:{folder}/blobs"), own, SystemClock())
    settings = DownloadSettings(hosts=(host,), total_s=20.0)
    job = DownloadJob("job_1", "s", 1, "F-1", "1", "a.bin", f"http://{host}/f", settings)
    got = download(job, tools)
    assert isinstance(got, Done), got
    body = json.dumps({"sha256": got.result.sha256}).encode()
    target = Target(private_hosts=(host,))
    erp = NotifySettings("erp", f"http://{host}/hooks", signer(("whsec_a2V5a2V5",)), target=target)
    attempt, outcome = notify(NotifyJob("msg_1", erp, 1, body), tools)
    assert isinstance(outcome, Done), outcome
scratch.close()
"""


def run(folder: Path, server: Server, **environ: str) -> int:
    argv = [sys.executable, "-c", WORK, str(folder), server.host]
    return subprocess.run(argv, env=environ, cwd=ROOT, check=False).returncode


def handle(request: Received, peer: Peer) -> None:
    peer.respond(200, DATA if request.method == "GET" else b"")


@pytest.mark.req("F11")
@pytest.mark.parametrize("name", POINTS)
def test_f_01_e_01_killed_at_any_point_the_end_is_the_same(tmp_path: Path, name: str) -> None:
    with serving(handle) as server:
        scratch = str(tmp_path)
        assert run(tmp_path, server, LAUFZETTEL_POINT=name, LAUFZETTEL_SCRATCH=scratch) == -9
        assert run(tmp_path, server) == 0
    told = [request for request in server.requests if request.method == "POST"]
    assert len({(r.header("webhook-id"), r.body) for r in told}) == 1
    (blob,) = open_blobs(f"file:{tmp_path}/blobs").list()
    assert json.loads(told[0].body)["sha256"] == blob.sha256
    open_scratch(tmp_path / "scratch").close()
    assert list((tmp_path / "scratch").iterdir()) == []


def test_every_point_lies_on_the_way(tmp_path: Path) -> None:
    with serving(handle) as server:
        assert run(tmp_path, server, LAUFZETTEL_TRACE="1", LAUFZETTEL_SCRATCH=str(tmp_path)) == 0
    lines = (tmp_path / "points.trace").read_text().splitlines()
    assert {line.split()[1] for line in lines} == set(POINTS)

"""Cases of a process that waits for others, and of one that is told to stop."""

from __future__ import annotations

import json
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import psycopg
import pytest
from standardwebhooks import Webhook

from app.clock import SystemClock
from app.compose import Process, Refused, compose_run
from app.config import Config
from app.store import tables as t
from app.store.engine import Store, open_store
from tests import runtimes as r
from tests.commands import ROOT, START, environment
from tests.servers import Peer, Received, Server, answering, closed_port, serving

pytestmark = pytest.mark.usefixtures("either_database")
WAITING = 50
NO_STEPS = "transforms = []"
IDLE = """
SELECT count(*) FROM pg_stat_activity
WHERE datname = current_database() AND state LIKE 'idle in transaction%'
  AND state_change < clock_timestamp() - interval '1 second'
"""


def delivery(number: int, url: str) -> tuple[dict[str, str], bytes]:
    """The headers and body of a signed delivery about a file."""
    now = SystemClock().now()
    data = {"file_id": f"F-{number}", "version": 1, "name": "a.pdf", "download_url": url}
    body = json.dumps({"type": "file.version.created", "timestamp": now.isoformat(), "data": data})
    signed = Webhook(r.SECRET).sign(f"evt-{number}", now, body)
    headers = {
        "webhook-id": f"evt-{number}",
        "webhook-timestamp": str(int(now.timestamp())),
        "webhook-signature": signed,
    }
    return headers, body.encode()


def post(base: str, number: int, url: str) -> float:
    """Deliver; gives how long the answer took."""
    headers, body = delivery(number, url)
    began_s = time.monotonic()
    answer = httpx.post(f"{base}/hooks/contracts", content=body, headers=headers, timeout=30)
    assert answer.status_code == 202, answer.text
    return time.monotonic() - began_s


@contextmanager
def serving_process(config: Config) -> Iterator[tuple[Process, str]]:
    process = compose_run(config)
    assert not isinstance(process, Refused), process
    process.start()
    try:
        assert process.web is not None
        yield process, process.web.url
    finally:
        process.stop(grace_s=0)


@pytest.mark.req("A13", "E10")
def test_f_06_while_all_peers_hang_intake_answers_and_no_transaction_is_open(
    tmp_path: Path,
) -> None:
    def answer_some(request: Received, peer: Peer) -> None:
        if request.target == "/good":
            peer.respond(200, r.PDF)
        else:
            peer.hang()

    def hang(request: Received, peer: Peer) -> None:
        peer.hang()

    port = closed_port()
    with serving(answer_some) as source, serving(hang) as erp:
        config = r.configured(
            tmp_path,
            source=source.host,
            destination=erp.url("/"),
            recipe=NO_STEPS,
            installation=f'listen = "127.0.0.1:{port}"',
            erp='timeout = "60s"\nconcurrency = 8',
        )
        with serving_process(config) as (process, base):
            for number in range(WAITING):
                r.announce(process, source.url("/good"), file_id=f"F-{number}")
            r.until(lambda: len(erp.requests) >= 8, within_s=60)
            for number in range(WAITING):
                r.announce(process, source.url("/hang"), file_id=f"H-{number}")
            r.until(lambda: any(q.target == "/hang" for q in source.requests), within_s=60)
            ends_s = time.monotonic() + 2.5
            took, number = [], 1000
            while time.monotonic() < ends_s:
                took.append(post(base, number, source.url("/hang")))
                assert idle_transactions(process.base.store) == 0
                number += 1
            assert httpx.get(f"{base}/health/ready", timeout=30).status_code == 200
    took.sort()
    assert took[len(took) * 9 // 10] < 1, took


def idle_transactions(store: Store) -> int:
    """How many sessions hold a transaction open and do nothing; SQLite has no sessions."""
    if store.backend == "sqlite":
        return 0
    with psycopg.connect(r.DATABASE.replace("+psycopg", "")) as connection:
        (number,) = connection.execute(IDLE.encode()).fetchone() or (0,)
    return int(number)


@pytest.mark.req("F10")
def test_f_10_a_polite_stop_answers_intake_and_finishes_or_gives_back_what_runs(
    tmp_path: Path,
) -> None:
    stopping = threading.Event()

    def slow(request: Received, peer: Peer) -> None:
        if request.target == "/finishes":
            stopping.wait(30)
            peer.respond(200, r.PDF)
        elif stopping.is_set():
            peer.respond(200, r.PDF)
        else:
            peer.hang()

    port = closed_port()
    with serving(slow) as source, serving(answering(204)) as erp:
        r.configured(
            tmp_path,
            source=source.host,
            destination=erp.url("/"),
            recipe=NO_STEPS,
            installation=f'listen = "127.0.0.1:{port}"',
        )
        base = f"http://127.0.0.1:{port}"
        process = run(tmp_path)
        try:
            r.until(lambda: is_ready(base), within_s=60)
            for number, path in enumerate(("/finishes", "/hangs", "/hangs")):
                post(base, number, source.url(path))
            r.until(lambda: len(source.requests) == 3)
            half = [Half(port, number, source.url("/finishes")) for number in (10, 11)]
            process.send_signal(signal.SIGTERM)
            began_s = time.monotonic()
            r.until(lambda: not is_ready(base))
            assert [each.rest() for each in half] == [202, 202]
            stopping.set()
            assert process.wait(30) == 0
            assert time.monotonic() - began_s < 20
        finally:
            process.kill()
            process.wait()
        states = after_the_stop(tmp_path)
        assert states.pop("F-0") == ("done", 1)
        assert set(states) == {"F-1", "F-2", "F-10", "F-11"}
        again(tmp_path, base, erp)


def after_the_stop(folder: Path) -> dict[str, Any]:
    """What became of each file's download; nobody holds any work."""
    store = open_store(database(folder))
    try:
        assert r.rows(store, t.leases) == []
        files = {row.stream: row.file_id for row in r.rows(store, t.files)}
        return {files[j.stream]: (j.state, j.attempts) for j in r.rows(store, t.jobs)}
    finally:
        store.close()


def again(folder: Path, base: str, erp: Server) -> None:
    """Start again: all is done at once, without waiting for a lease to run out."""
    process = run(folder)
    try:
        r.until(lambda: is_ready(base), within_s=60)
        r.until(lambda: len({q.header("webhook-id") for q in erp.requests}) == 5, within_s=20)
        process.send_signal(signal.SIGTERM)
        assert process.wait(30) == 0
    finally:
        process.kill()
        process.wait()


def database(folder: Path) -> str:
    return r.DATABASE.replace("sqlite:///store.db", f"sqlite:///{folder}/store.db")


def run(folder: Path) -> subprocess.Popen[bytes]:
    """``laufzettel run`` as a process of its own."""
    with (folder / "run.log").open("ab") as log:
        return subprocess.Popen(
            [sys.executable, "-c", START, "run"],
            cwd=folder,
            env=environment(SECRET=r.SECRET, PYTHONPATH=str(ROOT)),
            stdout=log,
            stderr=log,
        )


def is_ready(base: str) -> bool:
    try:
        return httpx.get(f"{base}/health/ready", timeout=5).status_code == 200
    except httpx.HTTPError:
        return False


class Half:
    """A delivery of which half the body has arrived."""

    def __init__(self, port: int, number: int, url: str) -> None:
        headers, body = delivery(number, url)
        lines = [f"{name}: {value}" for name, value in headers.items()]
        head = ["POST /hooks/contracts HTTP/1.1", "host: x", f"content-length: {len(body)}", *lines]
        self._sock = socket.create_connection(("127.0.0.1", port), timeout=20)
        self._rest = body[20:]
        self._sock.sendall("\r\n".join(head).encode() + b"\r\n\r\n" + body[:20])

    def rest(self) -> int:
        """Send the other half; gives the status of the answer."""
        with self._sock:
            self._sock.sendall(self._rest)
            return int(self._sock.recv(65536).split(b" ", 2)[1])

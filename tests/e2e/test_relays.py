"""Case E-02: several processes that send from one outbox, on PostgreSQL."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from app.compose import Refused, compose_worker
from tests import runtimes as r
from tests.crash.zygotes import ROOT
from tests.outboxes import idle, pile_up
from tests.servers import answering, serving
from tests.stores import Postgres

MESSAGES = 1000
PROCESSES = 4


@pytest.mark.req("E1", "E10", "D1")
def test_e_02_four_processes_send_each_of_a_thousand_messages_once(
    tmp_path: Path, postgres: Postgres, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = postgres.fresh()
    monkeypatch.setattr(r, "DATABASE", url)
    with serving(answering(204)) as erp:
        config = r.configured(
            tmp_path,
            source="127.0.0.1:1",
            destination=erp.url("/"),
            recipe="transforms = []",
            erp='rate = "5000/s"\nconcurrency = 32',
        )
        with idle(config) as base:
            pile_up(base.ledger, [f"F-{number}" for number in range(MESSAGES)])
        processes = [started(tmp_path, number) for number in range(PROCESSES)]
        try:
            r.until(lambda: len(erp.requests) >= MESSAGES, within_s=240)
        finally:
            for process in processes:
                process.send_signal(signal.SIGTERM)
            codes = [process.wait(60) for process in processes]
    assert codes == [0] * PROCESSES
    sent = Counter(request.header("webhook-id") for request in erp.requests)
    assert (len(sent), set(sent.values())) == (MESSAGES, {1})
    logs = [(tmp_path / f"worker-{number}.log").read_text() for number in range(PROCESSES)]
    # Each had a part in it, and no lock was in anyone's way.
    assert all("message.sent" in log for log in logs)
    assert not any("deadlock" in log or "exception" in log for log in logs)
    postgres.drop(url)


def started(folder: Path, number: int) -> subprocess.Popen[bytes]:
    """A worker as a process of its own."""
    command = [sys.executable, "-m", "app.cli", "worker", "-c", str(folder / "laufzettel.toml")]
    with (folder / f"worker-{number}.log").open("wb") as log:
        environ = {**os.environ, "SECRET": r.SECRET, "PYTHONPATH": str(ROOT)}
        return subprocess.Popen(command, cwd=ROOT, env=environ, stdout=log, stderr=log)


@pytest.mark.req("F1")
def test_a_worker_for_downloads_leaves_the_messages_to_others(
    tmp_path: Path, postgres: Postgres, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = postgres.fresh()
    monkeypatch.setattr(r, "DATABASE", url)
    with serving(answering(200, r.PDF)) as source, serving(answering(204)) as erp:
        config = r.configured(
            tmp_path, source=source.host, destination=erp.url("/"), recipe="transforms = []"
        )
        process = compose_worker(config, kinds=frozenset({"download"}))
        assert not isinstance(process, Refused)
        process.start()
        try:
            r.announce(process, source.url("/f"))
            r.until(lambda: r.messages_in(process, "pending") and not r.leases_left(process))
        finally:
            process.stop()
        assert erp.requests == []
    postgres.drop(url)

"""One trace from the webhook to the message, over processes, retries and restarts."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

import httpx
import pytest
from standardwebhooks import Webhook

from app.compose import Process, Refused, compose_run, compose_web
from app.config import Config
from app.store import migrate
from app.store import tables as t
from app.store.codec import decode_event
from app.store.engine import open_store
from tests import runtimes as r
from tests.collectors import Collector, collecting
from tests.servers import Peer, Received, answering, closed_port, in_turn, serving
from tests.stores import Postgres

TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"
SPAN = "00f067aa0ba902b7"
TOLD = f"00-{TRACE}-{SPAN}-01"


def configured(folder: Path, collector: str, *, source: str, erp: str) -> Config:
    port = closed_port()
    return r.configured(
        folder,
        source=source,
        destination=erp,
        download='retry = { base = "10ms", cap = "20ms" }\nbreaker = { open = "50ms" }',
        installation=f'listen = "127.0.0.1:{port}"\nbase_url = "http://127.0.0.1:{port}"',
        more=f'[traces]\nendpoint = "{collector}"',
    )


def deliver(config: Config, url: str, **headers: str) -> None:
    data = {"file_id": "F-1", "version": 1, "name": "a.pdf", "download_url": url}
    told = {"type": "file.version.created", "timestamp": "2026-11-30T10:00:00Z", "data": data}
    body, now = json.dumps(told), datetime.now(UTC)
    proof = {
        "webhook-id": "evt-1",
        "webhook-timestamp": str(int(now.timestamp())),
        "webhook-signature": Webhook(r.SECRET).sign("evt-1", now, body),
        "content-type": "application/json",
    }
    place = config.installation.base_url
    answer = httpx.post(f"{place}/hooks/contracts", content=body, headers=proof | headers)
    assert answer.status_code == 202, answer.text


@contextmanager
def up(process: Process | Refused) -> Iterator[Process]:
    assert isinstance(process, Process), process
    process.start()
    try:
        yield process
    finally:
        process.stop(grace_s=10)


def assert_one_trace(collector: Collector) -> None:
    spans = collector.spans
    assert {span.trace for span in spans} == {TRACE}
    known = {span.id for span in spans} | {SPAN}
    assert {span.parent for span in spans} <= known
    (accept,) = collector.named("delivery.accept")
    assert accept.parent == SPAN
    assert {span.parent for span in collector.named("job.download")} == {accept.id}
    assert collector.named("job.transform")[0].parent == collector.named("job.download")[-1].id
    assert collector.named("message.send")[0].parent == collector.named("job.transform")[0].id


@pytest.mark.req("F8")
@pytest.mark.req("B5")
def test_a_file_is_one_trace_through_retries_and_a_restart(tmp_path: Path) -> None:
    mended = threading.Event()

    def document(_: Received, peer: Peer) -> None:
        peer.respond(200, r.PDF) if mended.is_set() else peer.respond(500)

    erps = in_turn(answering(503), answering(204))
    with collecting() as collector, serving(erps) as erp, serving(document) as source:
        config = configured(tmp_path, collector.url, source=source.host, erp=erp.url("/h"))
        with up(compose_run(config)) as process:
            deliver(config, source.url("/f"), traceparent=TOLD)
            r.until(lambda: len(r.rows(process.base.store, t.attempts)) >= 2)
        mended.set()
        with up(compose_run(config)) as process:
            r.until(lambda: r.settled(process))
            events = r.rows(process.base.store, t.events)
    assert_one_trace(collector)
    downloads, sends = collector.named("job.download"), collector.named("message.send")
    assert [d.values["attempt"] for d in downloads] == [*range(1, len(downloads) + 1)]
    assert [d.values["outcome"] for d in downloads] == ["again"] * (len(downloads) - 1) + ["done"]
    assert [s.is_failed for s in sends] == [True, False]
    assert len({span.instance for span in downloads}) == 2
    assert erp.requests[-1].header("traceparent") == f"00-{TRACE}-{sends[-1].id}-01"
    recorded = [decode_event(row.body, None) for row in events]
    of_file = [each for each in recorded if each.stream.startswith("fil_")]
    assert {each.cause.trace[3:35] for each in of_file} == {TRACE}


@pytest.mark.req("F8")
def test_a_file_is_one_trace_over_web_and_worker(
    tmp_path: Path, postgres: Postgres, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = postgres.fresh()
    monkeypatch.setattr(r, "DATABASE", url)
    with (
        collecting() as collector,
        serving(answering(200, r.PDF)) as source,
        serving(answering(204)) as erp,
    ):
        config = configured(tmp_path, collector.url, source=source.host, erp=erp.url("/h"))
        migrate.upgrade(store := open_store(url))
        store.close()
        command = [sys.executable, "-m", "app.cli", "worker", "-c", str(config.path)]
        environ = os.environ | {"SECRET": r.SECRET}
        with up(compose_web(config)), subprocess.Popen(command, env=environ) as worker:
            deliver(config, source.url("/f"), traceparent=TOLD)
            r.until(lambda: erp.requests, within_s=60)
            worker.terminate()
            assert worker.wait(60) == 0
        assert_one_trace(collector)
        (accept,), (send,) = collector.named("delivery.accept"), collector.named("message.send")
        assert accept.instance != send.instance
    postgres.drop(url)


def test_a_collector_that_is_down_holds_nothing_up(tmp_path: Path) -> None:
    nobody = f"http://127.0.0.1:{closed_port()}"
    with serving(answering(200, r.PDF)) as source, serving(answering(204)) as erp:
        config = configured(tmp_path, nobody, source=source.host, erp=erp.url("/h"))
        with up(compose_run(config)) as process:
            deliver(config, source.url("/f"))
            r.until(lambda: r.settled(process))
    assert erp.requests[0].header("traceparent")

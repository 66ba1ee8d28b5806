"""Walks along a change feed: woken by a notice, one at a time, and by themselves."""

from __future__ import annotations

import hashlib
import hmac
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from app.compose import Process, Refused, compose_run
from app.config import Config, Invalid, load
from app.store import tables as t
from app.store import walks
from tests import runtimes as r
from tests.servers import Peer, Received, Server, serving
from tests.stores import SIDES

AT = "2026-11-30T10:00:00Z"
SECRET = "dropbox-app-secret-of-the-tests"


class Dropbox:
    """An account whose feed grows; answers as Dropbox documents it."""

    def __init__(self) -> None:
        self.names: list[str] = []
        self.gate = threading.Event()
        self.gate.set()
        self.refusals: list[tuple[int, str]] = []
        self.walking = 0
        self.most_walking = 0
        self.walks = 0
        self._lock = threading.Lock()

    def handle(self, request: Received, peer: Peer) -> None:
        if request.target.startswith("/2/files/download"):
            peer.respond(200, b"hello")
            return
        with self._lock:
            self.walks += 1
            self.walking += 1
            self.most_walking = max(self.walking, self.most_walking)
        seen = len(self.names)
        self.gate.wait(20)
        told = json.loads(request.body)
        start = int(told["cursor"]) if "cursor" in told else 0
        with self._lock:
            self.walking -= 1
        if self.refusals:
            status, wait = self.refusals.pop(0)
            peer.respond(status, b"{}", retry_after=wait)
            return
        entries = [
            {".tag": "file", "id": f"id:{n}", "rev": f"r{n}", "name": n, "size": 5}
            | {"server_modified": AT}
            for n in self.names[start:seen]
        ]
        page = {"entries": entries, "cursor": str(seen), "has_more": False}
        peer.respond(200, json.dumps(page).encode())


def text(source: Server, *, every: str = "1h") -> str:
    return f"""
[laufzettel]
database = "{r.DATABASE}"
artifacts = "file:artifacts"
listen = "127.0.0.1:0"
[sources.team]
profile = "dropbox"
secrets = ["env:SECRET"]
[sources.team.download]
hosts = ["{source.host}"]
[sources.team.changes]
base = "{source.url("").rstrip("/")}"
every = "{every}"
[recipes.all]
sources = ["team"]
transforms = [{{ name = "sum", use = "checksum" }}]
"""


@contextmanager
def installed(folder: Path, text: str) -> Iterator[Process]:
    (folder / "laufzettel.toml").write_text(text)
    config = load(folder / "laufzettel.toml", {"SECRET": SECRET})
    assert isinstance(config, Config), config
    process = compose_run(config)
    assert not isinstance(process, Refused), process
    process.start()
    try:
        yield process
    finally:
        process.stop(grace_s=5)


def notify(process: Process, account: str = "dbid:1") -> int:
    body = json.dumps({"list_folder": {"accounts": [account]}}).encode()
    signature = hmac.digest(SECRET.encode(), body, "sha256").hex()
    assert process.web is not None
    headers = {"x-dropbox-signature": signature}
    url = f"{process.web.url}/hooks/team"
    return httpx.post(url, content=body, headers=headers).status_code


def found(process: Process) -> dict[str, str]:
    """What walks found, by event id, and why they looked."""
    wanted = ("feed", "reconciliation")
    rows = r.rows(process.base.store, t.receipts)
    return {str(row.event_id): str(row.type) for row in rows if row.type in wanted}


def row(process: Process) -> Any:
    rows = r.rows(process.base.store, t.walks)
    return rows[0] if rows else None


def is_idle(process: Process) -> bool:
    stands = row(process)
    return bool(stands) and stands.walked_ms > 0 and stands.asked == stands.answered


@pytest.fixture(params=SIDES)
def database(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Both databases; the process takes the one that ``r.DATABASE`` names."""
    if request.param == "postgresql":
        postgres = request.getfixturevalue("postgres")
        url = postgres.fresh()
        monkeypatch.setattr(r, "DATABASE", url)
        yield
        postgres.drop(url)
    else:
        yield


@pytest.mark.req("A7", "F9")
@pytest.mark.usefixtures("database")
def test_a_notice_wakes_a_walk_and_what_it_finds_is_worked_like_a_delivery(tmp_path: Path) -> None:
    there = Dropbox()
    with serving(there.handle) as source, installed(tmp_path, text(source)) as process:
        r.until(lambda: is_idle(process))
        there.names.append("a.pdf")
        assert notify(process) == 200
        r.until(lambda: [f for f in r.rows(process.base.store, t.files) if f.state == "completed"])
        (kind,) = found(process).values()
        stands = row(process)
        downloads = [q.target for q in source.requests if "download" in q.target]
    assert (kind, stands.cursor, stands.reconciled) == ("feed", "1", 0)
    assert downloads == ["/2/files/download?arg=%7B%22path%22%3A%22rev%3Ara.pdf%22%7D"]


@pytest.mark.usefixtures("database")
def test_notices_while_a_walk_runs_start_one_more_and_the_last_is_not_lost(tmp_path: Path) -> None:
    there = Dropbox()
    with serving(there.handle) as source, installed(tmp_path, text(source)) as process:
        r.until(lambda: is_idle(process))
        before = there.walks
        there.gate.clear()
        assert notify(process) == 200
        r.until(lambda: there.walking == 1)
        for number in range(5):
            there.names.append(f"{number}.pdf")
            assert notify(process, f"dbid:{number}") == 200
        there.gate.set()
        r.until(lambda: is_idle(process))
        assert there.walks == before + 2
        assert there.most_walking == 1
        assert len(found(process)) == 5


@pytest.mark.req("F9")
def test_what_no_notice_told_is_found_by_a_periodic_walk_and_marked_so(tmp_path: Path) -> None:
    there = Dropbox()
    with (
        serving(there.handle) as source,
        installed(tmp_path, text(source, every="200ms")) as process,
    ):
        r.until(lambda: is_idle(process))
        there.names.append("a.pdf")
        r.until(lambda: found(process))
        r.until(lambda: row(process).reconciled == 1)
        assert process.web is not None
        token = {"authorization": f"Bearer {process.web.local_token}"}
        answer = httpx.get(f"{process.web.url}/api/v1/sources", headers=token).json()
        changes = answer["items"][0]["changes"]
        metrics = process.base.metrics.page().decode()
        assert list(found(process).values()) == ["reconciliation"]
    assert (changes["reconciled"], changes["failures"], changes["error"]) == (1, 0, "")
    assert 'found_events_total{by="reconciliation",source="team"} 1.0' in metrics


def test_a_throttled_feed_waits_as_long_as_it_says_whoever_asks_meanwhile(tmp_path: Path) -> None:
    there = Dropbox()
    there.refusals.append((429, "3600"))
    with serving(there.handle) as source, installed(tmp_path, text(source)) as process:
        r.until(lambda: row(process) and row(process).failures == 1)
        there.names.append("a.pdf")
        assert notify(process) == 200
        stands = row(process)
        assert stands.error == "429 at the source's feed"
        with process.base.store.read() as connection:
            assert walks.due(connection, ["team"], stands.not_before_ms - 1) == []
            assert walks.due(connection, ["team"], stands.not_before_ms) == ["team"]
        assert there.walks == 1


@pytest.mark.usefixtures("database")
def test_a_walker_that_was_overtaken_keeps_nothing(tmp_path: Path) -> None:
    there = Dropbox()
    with serving(there.handle) as source, installed(tmp_path, text(source)) as process:
        r.until(lambda: is_idle(process))
        operate = process.base.ledger.operate
        operate(lambda c, now: walks.ask(c, {walks.Wake("other")}, now))
        first = operate(lambda c, now: walks.claim(c, "other", "one", now, lease_ms=-1))
        none = operate(lambda c, now: walks.claim(c, "nobody-asked", "one", now, lease_ms=9))
        assert first is not None
        assert none is not None, "a feed that was never walked is due"
        second = operate(lambda c, now: walks.claim(c, "other", "two", now + 9, lease_ms=60_000))
        assert second is not None
        assert operate(lambda c, now: walks.claim(c, "other", "one", now, lease_ms=9)) is None
        step = walks.Step("17", 0, 60.0, is_whole=True)
        assert not operate(lambda c, now: walks.keep(c, first, step, now))
        assert not operate(lambda c, now: walks.renew(c, first, now, lease_ms=9))
        assert operate(lambda c, now: walks.keep(c, second, step, now))
        stands = {each.source: each for each in r.rows(process.base.store, t.walks)}
    assert (stands["other"].cursor, stands["other"].answered) == ("17", 1)


def test_a_feed_is_refused_where_there_is_none_and_where_its_host_is_not_listed(
    tmp_path: Path,
) -> None:
    with serving(Dropbox().handle) as source:
        good = text(source)
    path = tmp_path / "laufzettel.toml"
    for change in (
        ('profile = "dropbox"', 'profile = "standard-webhooks"'),
        ("hosts = [", 'hosts = ["other.example"] #'),
        ("base = ", 'base = "https://evil.example" #'),
        ('profile = "dropbox"', 'profile = "microsoft-graph"'),
    ):
        path.write_text(good.replace(*change))
        refused = load(path, {"SECRET": hashlib.sha256(b"x").hexdigest()})
        assert isinstance(refused, Invalid), change
        assert any(".changes." in problem.key for problem in refused.problems), change

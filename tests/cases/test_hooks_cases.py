"""Cases of acceptance over real HTTP: each test is named after its case."""

from __future__ import annotations

import json
import os
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path

import httpx
import pytest

from app.clock import SettableClock
from app.store import tables as t
from domain.profiles import SourceSettings
from domain.profiles import prepare as ready
from tests import installations
from tests.deliveries import TABLE, body_of, length, post, refused, signed
from tests.installations import (
    NOW,
    OLD_SECRET,
    SOURCE,
    STAMPED,
    Installation,
    count,
    event,
    exchange,
    found,
    installed,
    recorded,
    signature,
    stamped,
    status_of,
)

ROOT = Path(__file__).parents[2]


@pytest.fixture
def running(tmp_path: Path) -> Iterator[Installation]:
    with installed(tmp_path) as installation:
        yield installation


@pytest.mark.req("A8")
@pytest.mark.req("A2")
def test_a_01_the_same_delivery_later_gets_the_original_receipt(tmp_path: Path) -> None:
    clock = SettableClock(NOW)
    body = event()
    with installed(tmp_path, STAMPED, clock=clock) as running:
        answers = []
        for wait in (timedelta(0), timedelta(minutes=1), timedelta(hours=30)):
            clock.advance(wait.total_seconds())
            headers = stamped(body, clock.now())
            answers.append(running.http.post("/hooks/t", content=body, headers=headers))
        assert [answer.status_code for answer in answers] == [202, 200, 200]
        assert len({json.dumps(answer.json()["receipt"]) for answer in answers}) == 1
        assert answers[0].headers["location"].endswith(answers[0].json()["receipt"]["id"])
        assert [a.json()["status"] for a in answers] == ["accepted", "duplicate", "duplicate"]
        assert recorded(running) == 1
        assert count(running, t.deliveries, verdict="duplicate") == 2


@pytest.mark.req("A10")
def test_a_02_twenty_equal_deliveries_at_once_make_one_event(running: Installation) -> None:
    body = event()
    with ThreadPoolExecutor(20) as pool:
        answers = list(pool.map(lambda _: running.send(body), range(20)))
    assert sorted(answer.status_code for answer in answers) == [200] * 19 + [202]
    assert len({json.dumps(answer.json()["receipt"]) for answer in answers}) == 1
    assert recorded(running) == 1
    assert count(running, t.jobs) == 1


@pytest.mark.req("A7")
def test_a_03_the_event_id_decides_and_not_the_delivery_id(tmp_path: Path) -> None:
    body = event()
    with installed(tmp_path, STAMPED) as running:
        first = running.http.post("/hooks/t", content=body, headers=stamped(body, NOW, "d-1"))
        again = stamped(body, NOW + timedelta(seconds=9), "d-2")
        second = running.http.post("/hooks/t", content=body, headers=again)
        other = event(id="evt-2")
        third = running.http.post("/hooks/t", content=other, headers=stamped(other, NOW, "d-3"))
        assert [a.status_code for a in (first, second, third)] == [202, 200, 202]
        assert recorded(running) == 2
        assert [r.delivery_id for r in found(running, t.receipts)] == ["d-1", "d-3"]
        assert [r.delivery_id for r in found(running, t.deliveries)] == ["d-2"]


@pytest.mark.req("A1")
def test_a_04_the_signature_is_over_the_bytes_received(running: Installation) -> None:
    body = body_of("ok-odd-spacing.json")
    vector = next(v for v in TABLE["vectors"] if v["file"] == "ok-odd-spacing.json")
    changed = running.send(body.replace(b" ", b"", 1), x_signature=vector["body_hex_sha256"])
    assert changed.status_code == 401
    assert count(running, t.payloads) == 0
    assert running.send(body, x_signature=vector["body_hex_sha256"]).status_code == 202
    assert [row.body for row in found(running, t.payloads)] == [body]
    assert found(running, t.receipts)[0].digest == vector["sha256"]


@pytest.mark.req("A1")
def test_a_05_a_broken_signature_header_is_refused_and_counted(running: Installation) -> None:
    body = body_of("ok-compact.json")
    good = signature(body).encode()
    headers = [
        b"x-other: 1",
        b"x-signature: ",
        signed(b"another body"),
        b"x-signature: sha256=" + b"0" * 64,
        b"x-signature: " + good[:-1],
        b"x-signature: sha256=",
        b"x-signature: " + b"x" * 10_000,
        b"x-signature: sha256=\xe9" + b"0" * 63,
        b"x-signature: sha256=\x00",
    ]
    answers = [
        status_of(exchange(running, post(body, header, length(len(body))))) for header in headers
    ]
    assert answers[:-1] == [401] * 8
    assert answers[-1] in {400, 401}
    assert recorded(running) == 0
    assert count(running, t.payloads) == 0
    refused(running, 8 + (answers[-1] == 401))


@pytest.mark.req("A2")
def test_a_06_the_clock_window_holds_on_both_sides(tmp_path: Path) -> None:
    with installed(tmp_path, STAMPED) as running:
        answers = []
        for n, off_s in enumerate((-299, 299, -301, 301)):
            body = event(id=f"evt-{n}")
            headers = stamped(body, NOW + timedelta(seconds=off_s))
            answers.append(running.http.post("/hooks/t", content=body, headers=headers))
        headers = stamped(event(), NOW) | {"x-timestamp": "soon"}
        answers.append(running.http.post("/hooks/t", content=event(), headers=headers))
        assert [a.status_code for a in answers] == [202, 202, 401, 401, 401]
        assert len({a.content for a in answers[2:]}) == 1
        refused(running, 3)


@pytest.mark.req("A15")
def test_a_07_two_secrets_verify_during_a_change(tmp_path: Path) -> None:
    both = SOURCE.replace('["env:S_SECRET"]', '["env:S_SECRET", "env:S_OLD_SECRET"]')
    old, new = event(id="evt-old"), event(id="evt-new")
    with installed(tmp_path, both) as running:
        first = running.send(old, x_signature=signature(old, OLD_SECRET))
        assert [first.status_code, running.send(new).status_code] == [202, 202]
        keys = running.config.sources[0].ready.keys
        assert [r.key_id for r in found(running, t.receipts)] == [keys[1].id, keys[0].id]
    with installed(tmp_path) as running:
        late = event(id="evt-late")
        answer = running.send(late, x_signature=signature(late, OLD_SECRET))
        assert answer.status_code == 401
    assert OLD_SECRET not in repr(first.headers) + first.text


@pytest.mark.req("A15")
def test_a_08_a_source_without_a_secret_never_runs() -> None:
    assert isinstance(ready(SourceSettings(profile="standard-webhooks", secrets=())), tuple)


@pytest.mark.req("A4")
def test_a_09_a_chunked_body_is_read_whole_or_not_at_all(running: Installation) -> None:
    body = event(note="x" * 500)
    pieces = b"".join(b"1\r\n" + body[n : n + 1] + b"\r\n" for n in range(len(body)))
    chunked = b"transfer-encoding: chunked"
    whole = exchange(running, post(pieces + b"0\r\n\r\n", signed(body), chunked))
    assert status_of(whole) == 202
    assert found(running, t.payloads)[0].body == body
    other = event(id="evt-2", note="x" * 500)
    pieces = b"".join(b"1\r\n" + other[n : n + 1] + b"\r\n" for n in range(len(other)))
    broken = exchange(running, post(pieces, signed(other), chunked), finish=True)
    assert status_of(broken) not in range(200, 300)
    assert recorded(running) == 1


@pytest.mark.req("A14")
def test_a_10_a_slash_at_the_end_makes_no_difference(running: Installation) -> None:
    body = event()
    headers = {"x-signature": signature(body)}
    statuses = [
        running.http.post(path, content=body, headers=headers).status_code
        for path in ("/hooks/s", "/hooks/s/")
    ]
    assert statuses == [202, 200]
    asked = running.http.get("/hooks/s")
    assert (asked.status_code, asked.headers["allow"]) == (405, "POST, OPTIONS")
    assert running.http.post("/hooks/nobody", content=body).status_code == 404
    assert running.http.post("/hooks/", content=body).status_code == 404
    assert recorded(running) == 1


@pytest.mark.req("A9")
def test_a_20_a_store_that_cannot_write_is_503_until_it_can(
    running: Installation, tmp_path: Path
) -> None:
    body = event()
    broken(tmp_path, "ALTER TABLE receipts RENAME TO away")
    answer = running.send(body)
    assert (answer.status_code, answer.headers["retry-after"]) == (503, "5")
    assert answer.json()["type"] == "unavailable"
    broken(tmp_path, "ALTER TABLE away RENAME TO receipts")
    assert running.send(body).status_code == 202
    assert recorded(running) == 1


def broken(folder: Path, statement: str) -> None:
    connection = sqlite3.connect(folder / "laufzettel.db")
    connection.execute(statement)
    connection.close()


@pytest.mark.req("A9")
def test_a_20_a_defect_of_ours_is_503_too_for_the_platform_to_come_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with installed(tmp_path) as running:

        def broken(*_: object, **__: object) -> None:
            raise AssertionError("a defect")

        monkeypatch.setattr(running.ledger, "submit", broken)
        answer = running.send(event())
        assert (answer.status_code, answer.headers["retry-after"]) == (503, "30")
        assert "defect" not in answer.text
        monkeypatch.undo()
        assert running.send(event()).status_code == 202


def test_a_20_a_locked_store_is_503_within_the_time_that_the_source_waits(
    running: Installation, tmp_path: Path
) -> None:
    body = event()
    lock = sqlite3.connect(tmp_path / "laufzettel.db", isolation_level=None)
    lock.execute("BEGIN IMMEDIATE")
    began = time.monotonic()
    answer = running.send(body)
    assert (answer.status_code, answer.headers["retry-after"]) == (503, "5")
    assert time.monotonic() - began < 5
    lock.close()
    # 503 said "not known to be stored": it may have been stored since.
    assert running.send(body).status_code in {200, 202}
    assert running.send(body).status_code == 200
    assert recorded(running) == 1


CRASHES = {
    "hooks.body_read": 202,
    "ledger.commit.before:2": 202,
    "ledger.commit.after:2": 200,
    "ledger.commit.answer_lost:2": 200,
    "hooks.answer.before": 200,
}


@pytest.mark.req("A9")
@pytest.mark.parametrize("point, status", CRASHES.items())
def test_a_21_a_crash_around_the_answer_loses_and_doubles_nothing(
    tmp_path: Path, point: str, status: int
) -> None:
    body = event()
    armed = {"LAUFZETTEL_SCRATCH": str(tmp_path), "LAUFZETTEL_POINT": point}
    environ = {**os.environ, "PYTHONPATH": str(ROOT), **armed}
    command = [sys.executable, "-m", "tests.cases.serve", str(tmp_path)]
    with subprocess.Popen(
        command, cwd=ROOT, env=environ, stdout=subprocess.PIPE, stdin=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        url = process.stdout.readline().strip()
        with pytest.raises(httpx.TransportError):
            httpx.post(f"{url}/hooks/s", content=body, headers={"x-signature": signature(body)})
        assert process.wait(20) == -9
    with installed(tmp_path) as running:
        assert running.send(body).status_code == status
        assert recorded(running) == 1


@pytest.mark.req("A14")
def test_a_22_a_notice_about_the_subscription_is_recorded_and_starts_nothing(
    running: Installation,
) -> None:
    notice = b'{"id":"evt-1","type":"subscription.expiring"}'
    answer = running.send(notice)
    assert (answer.status_code, answer.json()["status"]) == (202, "accepted")
    assert [row.type for row in found(running, t.events)][-1] == "SubscriptionNoticed"
    assert count(running, t.jobs) == count(running, t.files) == 0
    assert running.send(notice).status_code == 200


@pytest.mark.req("A8")
def test_other_bytes_under_a_known_id_are_409_and_in_quarantine_once(
    running: Installation,
) -> None:
    first = running.send(event())
    for _ in range(2):
        answer = running.send(event(file_version=2))
        assert (answer.status_code, answer.json()["type"]) == (409, "event-conflict")
    assert answer.json()["receipt"] == first.json()["receipt"]
    assert (count(running, t.deliveries, verdict="conflict"), recorded(running)) == (1, 1)
    assert [file.current for file in found(running, t.files)] == ["1"]


@pytest.mark.req("A12")
def test_refusals_of_one_kind_are_one_row_a_minute_and_kinds_are_bounded(
    running: Installation,
) -> None:
    for _ in range(50):
        running.send(event(), x_signature="sha256=" + "0" * 64)
    refused(running, 50)
    assert count(running, t.deliveries) == 2
    for n in range(40):
        running.send(json.dumps({"id": "x", "type": "file.uploaded", "n": n}).encode() + b"}" * n)
    refused(running, 90)
    assert count(running, t.deliveries) < 2 + 2 * 21


def test_nothing_of_a_request_is_in_the_log_lines(
    running: Installation, capsys: pytest.CaptureFixture[str]
) -> None:
    for _ in range(2):
        running.send(event(file_name="Geheim.pdf", id="evt-geheim"))
    running.send(event(file_name="Geheim.pdf", id="evt-geheim", file_size="x"))
    running.send(event(file_name="Geheim.pdf"), x_signature="sha256=geheim")
    said = "".join(capsys.readouterr())
    assert "delivery.duplicate" in said
    assert "eheim" not in said
    assert installations.SECRET not in said

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

import httpx
import pytest
from typer.testing import CliRunner

from app.cli import app
from app.cli.demo.journal import Journal, entries
from app.cli.demo.platform import Broken, Busy, NotYet, Platform, Short, Slow, path_of
from app.cli.demo.receiver import Arrival, Behaviour, Receiver, keys_of
from app.cli.demo.sender import Sender
from app.cli.demo.serving import LoopbackServer, Respond
from app.clock import SystemClock
from app.config import Config, load
from domain import profiles, signatures
from domain.profiles import Source, SourceEvent, SourceSettings
from domain.schemes import STANDARD_SCHEME, Key, Request
from tests.servers import answering, in_turn, serving

SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
OTHER = "whsec_AQIDBAUGBwgJCgsMDQ4PEBESExQVFhcYGRobHB0eHyA="


@contextmanager
def listening(respond: Respond) -> Iterator[LoopbackServer]:
    server = LoopbackServer(respond).start()
    try:
        yield server
    finally:
        server.stop()


def receiver(journal: Journal | None = None, shown: list[Arrival] | None = None) -> Receiver:
    keys = keys_of((SECRET,))
    assert isinstance(keys, tuple)
    show = shown.append if shown is not None else None
    return Receiver(keys, clock=SystemClock(), journal=journal, shown=show)


def message(sequence: int = 1, *, version: str = "1", file_id: str = "F-1") -> bytes:
    data = {"source": "s", "file_id": file_id, "version": version, "sequence": sequence}
    return json.dumps({"type": "file.version.completed", "data": data}).encode()


def sent(
    server: LoopbackServer | str, message_id: str, body: bytes, *, secret: str = SECRET
) -> int:
    keys = keys_of((secret,))
    assert isinstance(keys, tuple)
    headers = (("webhook-id", message_id), ("idempotency-key", message_id))
    request = Request("POST", "", "/", "", headers, body)
    proof = signatures.sign(STANDARD_SCHEME, request, keys, datetime.now(UTC))
    assert isinstance(proof, signatures.Signed)
    told = dict((*headers, *proof.headers))
    url = server if isinstance(server, str) else server.url("/hooks")
    return httpx.post(url, content=body, headers=told).status_code


def verdicts(path: Path) -> list[str]:
    return [entry["verdict"] for entry in entries(path)]


def test_a_receiver_does_each_message_once_and_drops_what_is_old(tmp_path: Path) -> None:
    path = tmp_path / "erp.jsonl"
    with listening(receiver(Journal(path)).respond) as server:
        answers = [
            sent(server, "msg_1", message(5)),
            sent(server, "msg_1", message(5)),
            sent(server, "msg_2", message(4)),
            sent(server, "msg_3", message(6)),
            sent(server, "msg_3", message(7)),
            sent(server, "msg_4", message(1, file_id="F-2")),
        ]
    assert answers == [200] * 6
    assert verdicts(path) == ["new", "repeat", "old", "new", "repeat", "new"]


def test_a_receiver_that_starts_again_knows_the_messages_of_its_earlier_life(
    tmp_path: Path,
) -> None:
    path = tmp_path / "erp.jsonl"
    for _ in range(2):
        with listening(receiver(Journal(path)).respond) as server:
            sent(server, "msg_1", message())
    assert verdicts(path) == ["new", "repeat"]


def test_a_message_signed_with_another_secret_is_refused_in_words() -> None:
    shown: list[Arrival] = []
    with listening(receiver(shown=shown).respond) as server:
        assert sent(server, "msg_1", message(), secret=OTHER) == 401
        assert httpx.post(server.url(), content=message()).status_code == 401
    assert "another secret" in shown[0].reason
    assert "signature missing: header webhook-signature" in shown[1].reason


def test_a_receiver_misbehaves_as_often_as_it_is_told(tmp_path: Path) -> None:
    path = tmp_path / "erp.jsonl"
    subject = receiver(Journal(path))
    with listening(subject.respond) as server:
        subject.misbehave(Behaviour(fail=503, times=1))
        assert sent(server, "msg_1", message()) == 503
        subject.misbehave(Behaviour(drop_answer=True, times=1))
        with pytest.raises(httpx.RemoteProtocolError):
            sent(server, "msg_1", message())
        assert sent(server, "msg_1", message()) == 200
    assert verdicts(path) == ["failed", "new", "repeat"]


def test_a_receiver_that_hangs_has_kept_the_message() -> None:
    shown: list[Arrival] = []
    subject = receiver(shown=shown)
    subject.misbehave(Behaviour(hang_s=60))
    with listening(subject.respond) as server:
        threading.Timer(0.1, subject.close).start()
        assert sent(server, "msg_1", message()) == 200
    assert [arrival.verdict for arrival in shown] == ["new"]


@contextmanager
def offering(path: Path) -> Iterator[tuple[Platform, LoopbackServer]]:
    platform = Platform(clock=SystemClock(), journal=Journal(path))
    platform.put("F/1", "2", b"0123456789", media_type="text/plain")
    with listening(platform.respond) as server:
        yield platform, server


def test_a_platform_serves_whole_files_ranges_and_unchanged_ones(tmp_path: Path) -> None:
    with offering(tmp_path / "p.jsonl") as (_, server):
        url = server.url(path_of("F/1", "2"))
        whole = httpx.get(url)
        etag = whole.headers["etag"]
        assert (whole.status_code, whole.content) == (200, b"0123456789")
        assert etag == f'"{hashlib.sha256(b"0123456789").hexdigest()}"'
        spans = {"bytes=2-4": b"234", "bytes=7-": b"789", "bytes=-3": b"789"}
        for asked, wanted in spans.items():
            part = httpx.get(url, headers={"range": asked})
            assert (part.status_code, part.content) == (206, wanted)
        assert httpx.get(url, headers={"range": "bytes=10-"}).status_code == 416
        changed = httpx.get(url, headers={"range": "bytes=2-", "if-range": '"x"'})
        assert changed.status_code == 200
        assert httpx.get(url, headers={"if-none-match": etag}).status_code == 304
        assert httpx.head(url).headers["content-length"] == "10"
        assert httpx.get(server.url("/else")).status_code == 404


def test_a_platform_has_moods_one_a_request_and_counts_every_request(tmp_path: Path) -> None:
    path = tmp_path / "p.jsonl"
    with offering(path) as (platform, server):
        url = server.url(path_of("F/1", "2"))
        platform.misbehave("F/1", "2", NotYet(), Busy("7"), Broken(), Short(), Slow(0.05))
        assert httpx.get(url).status_code == 404
        busy = httpx.get(url)
        assert (busy.status_code, busy.headers["retry-after"]) == (503, "7")
        assert httpx.get(url).status_code == 500
        with pytest.raises(httpx.RemoteProtocolError):
            httpx.get(url)
        assert [httpx.get(url).content for _ in range(2)] == [b"0123456789"] * 2
    moods = [(entry["file_id"], entry["mood"]) for entry in entries(path)]
    assert moods == [("F/1", mood) for mood in ("NotYet", "Busy", "Broken", "Short", "Slow", "")]


def standard_source() -> Source:
    source = profiles.prepare(SourceSettings(secrets=(SECRET,)))
    assert isinstance(source, Source)
    return source


EVENT = SourceEvent(
    "evt_1",
    "",
    "version",
    "F-1",
    version="3",
    name="a.pdf",
    url="http://127.0.0.1:9001/f",
    occurred_at=datetime(2026, 11, 30, tzinfo=UTC),
)


def sender(url: str, path: Path | None = None) -> Sender:
    journal = Journal(path) if path else None
    return Sender(standard_source(), url, clock=SystemClock(), journal=journal)


def test_a_source_sends_until_it_is_answered_for_good_and_signs_each_attempt(
    tmp_path: Path,
) -> None:
    path = tmp_path / "p.jsonl"
    given = in_turn(answering(503), answering(500), answering(202, b'{"receipt":{"id":"rcp_1"}}'))
    with serving(given) as server:
        subject = sender(server.url("/hooks/s"), path)
        answer = subject.until_answered(EVENT)
        subject.close()
        assert (answer.status, answer.attempts, answer.receipt_id) == (202, 3, "rcp_1")
        assert {request.header("webhook-id") for request in server.requests} == {"evt_1"}
        assert len({request.body for request in server.requests}) == 1
    assert [entry["status"] for entry in entries(path)] == [503, 500, 202]


@pytest.mark.parametrize("status", [200, 401, 409, 422])
def test_a_conflict_or_a_refusal_is_an_answer_for_good(status: int) -> None:
    with serving(answering(status)) as server:
        subject = sender(server.url("/hooks/s"))
        assert subject.until_answered(EVENT).status == status
        subject.close()
        assert len(server.requests) == 1


def test_a_journal_whose_writer_was_killed_in_a_line_goes_on_in_the_next(tmp_path: Path) -> None:
    path = tmp_path / "j.jsonl"
    path.write_bytes(b'{"n":1}\n{"n":2')
    Journal(path).write({"n": 3})
    assert entries(path) == [{"n": 1}, {"n": 3}]


def test_a_key_that_signs_verifies_what_it_signed_with_its_public_half() -> None:
    keys = keys_of((f"whsk_{'A' * 43}=",))
    assert isinstance(keys, tuple)
    assert [key.kind for key in keys] == ["public"]
    assert isinstance(keys[0], Key)


@pytest.mark.req("F12")
def test_the_command_receives_what_the_first_destination_of_the_file_is_sent(
    tmp_path: Path,
) -> None:
    made = CliRunner().invoke(app, ["init", str(tmp_path)])
    assert made.exit_code == 0, made.output
    config = load(tmp_path / "laufzettel.toml", {})
    assert isinstance(config, Config)
    secret = config.destinations[0].secrets[0].reveal()
    command = [sys.executable, "-m", "app.cli", "receive", "-c", str(config.path), "--json"]
    with subprocess.Popen(
        [*command, "--port", "0", "--journal", str(tmp_path / "r.jsonl")],
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        url = json.loads(process.stdout.readline())["listening"]
        assert sent(url, "msg_1", message(), secret=secret) == 200
        assert json.loads(process.stdout.readline())["verdict"] == "new"
        process.terminate()
        assert process.wait(10) == 0
    assert verdicts(tmp_path / "r.jsonl") == ["new"]

"""Cases C-10 to C-17, B-03 and B-08: limits, contents and credentials of downloads."""

from __future__ import annotations

import hashlib
import json
import resource
import threading
import time
import tracemalloc
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from domain.outcomes import Again, Dead, Done
from jobs.download import download
from jobs.outbound import Fixed
from jobs.tools import Cancelled, SignInFailed, Tools
from tests.downloads import DATA, FILES, SHA, TOKEN, from_server, outcome_of, stored
from tests.effects import MIB, download_job, tools_in
from tests.servers import Peer, Received, answering, serving


@pytest.fixture
def tools(tmp_path: Path) -> Iterator[Tools]:
    with tools_in(tmp_path) as made:
        yield made


@pytest.mark.req("D2")
def test_c_10_a_length_above_the_limit_is_refused_after_the_headers(tools: Tools) -> None:
    taken: list[int] = []

    def large(request: Received, peer: Peer) -> None:
        peer.send(b"HTTP/1.1 200 X\r\ncontent-length: 53477376\r\n\r\n")
        taken.append(peer.flood(size_bytes=51 * MIB))

    assert outcome_of(tools, large) == Dead("larger than 50 MiB")
    assert taken == [] or taken[0] < 16 * MIB  # what the kernel's buffers take


def test_c_10_a_body_without_length_is_stopped_at_the_limit(tools: Tools) -> None:
    def endless(request: Received, peer: Peer) -> None:
        peer.send(b"HTTP/1.1 200 X\r\nconnection: close\r\n\r\n")
        peer.flood(size_bytes=200 * MIB)
        peer.close()

    assert outcome_of(tools, endless, max_size_bytes=2 * MIB) == Dead("larger than 2 MiB")


def test_c_10_an_announced_size_above_the_limit_is_not_even_asked_for(tools: Tools) -> None:
    with serving(answering(200, DATA)) as server:
        job = from_server(server, size_bytes=50 * MIB + 1)
        assert download(job, tools) == Dead("larger than 50 MiB")
        assert server.requests == []


@pytest.mark.req("D7")
def test_c_10_a_file_of_50_mib_takes_little_memory(tools: Tools) -> None:
    def full(request: Received, peer: Peer) -> None:
        peer.send(b"HTTP/1.1 200 X\r\ncontent-length: 52428800\r\n\r\n")
        peer.flood(size_bytes=50 * MIB)

    tracemalloc.start()
    result = outcome_of(tools, full)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert isinstance(result, Done)
    assert result.result.size_bytes == 50 * MIB
    assert peak < 4 * MIB


@pytest.fixture
def small_disk() -> Iterator[None]:
    """A limit on file sizes stands in for a full disk: the kernel refuses the write itself."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (MIB, hard))
    yield
    resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@pytest.mark.usefixtures("small_disk")
def test_c_11_a_full_disk_uses_up_no_attempt_and_leaves_no_file(tools: Tools) -> None:
    result = outcome_of(tools, answering(200, b"x" * (2 * MIB)))
    assert result == Again("disk full", counted=False)


LOGIN = b"<!DOCTYPE html>\n<html><head><title>Sign in</title></head><body></body></html>"


@pytest.mark.req("D2")
@pytest.mark.parametrize("sent", ["text/html; charset=utf-8", "application/pdf", ""])
def test_c_12_a_sign_in_page_is_not_the_file(tools: Tools, sent: str) -> None:
    headers = {"content_type": sent} if sent else {}
    expected = Again("source sent text/html instead of application/pdf")
    page = answering(200, LOGIN, **headers)
    assert outcome_of(tools, page, media_type="application/pdf") == expected
    assert outcome_of(tools, page, name="invoice.pdf") == expected
    assert outcome_of(tools, page, name="invoice.pdf", size_bytes=1872, sha256=SHA) == expected


def test_c_12_an_error_in_json_is_not_the_file(tools: Tools) -> None:
    error = answering(200, b'{"error":"no"}', content_type="application/problem+json")
    expected = Again("source sent application/json instead of application/pdf")
    assert outcome_of(tools, error, name="invoice.pdf") == expected


@pytest.mark.parametrize(
    "name, sent, body",
    [
        ("page.html", "text/html", LOGIN),
        ("data.json", "application/json", b'{"a":1}'),
        ("notes.txt", "application/octet-stream", LOGIN),
        ("table.csv", "text/html", b"id;name\n1;x\n"),
        ("x.pdf", "text/plain", b"%PDF-1.7 ..."),
        ("x.pdf", "text/html", b"\n\n%PDF-1.7 ..."),
        ("x.docx", "application/zip", b"PK\x03\x04...."),
        ("x", "text/html", LOGIN),
    ],
)
def test_c_12_honest_files_are_taken_also_with_a_careless_type(
    tools: Tools, name: str, sent: str, body: bytes
) -> None:
    result = outcome_of(tools, answering(200, body, content_type=sent), name=name)
    assert stored(tools, result) == body


def test_c_12_the_announced_hash_outweighs_the_type(tools: Tools) -> None:
    digest = hashlib.sha256(LOGIN).hexdigest()
    page = answering(200, LOGIN, content_type="text/html")
    result = outcome_of(tools, page, media_type="application/pdf", sha256=digest)
    assert stored(tools, result) == LOGIN


def test_c_13_an_empty_file_is_a_file_if_it_was_announced(tools: Tools) -> None:
    assert stored(tools, outcome_of(tools, answering(200), size_bytes=0, name="a.pdf")) == b""


def test_c_13_nothing_instead_of_1872_bytes_is_a_short_body(tools: Tools) -> None:
    assert outcome_of(tools, answering(200), size_bytes=1872) == Again("short body: 0 of 1872")


@pytest.mark.parametrize(
    "line", (FILES / "names.jsonl").read_text().splitlines(), ids=lambda line: None
)
def test_c_14_no_name_touches_a_path(tools: Tools, tmp_path: Path, line: str) -> None:
    name = json.loads(line)["name"]
    disposition = "attachment; filename*=UTF-8''x"
    result = outcome_of(
        tools, answering(200, DATA, content_disposition=disposition), name=name, sha256=SHA
    )
    assert stored(tools, result) == DATA
    below = {p.relative_to(tmp_path).parts[0] for p in tmp_path.rglob("*")}
    assert below == {"blobs", "scratch"}
    assert [p.name for p in (tmp_path / "blobs").rglob("*") if p.is_file()] == [SHA]


class Renewing:
    """Credentials whose first token has run out."""

    def __init__(self) -> None:
        self.renewals = 0
        self._lock = threading.Lock()

    def headers(self) -> tuple[tuple[str, str], ...]:
        return (("authorization", f"Bearer {self.renewals}"),)

    def renewed(self, stale: tuple[tuple[str, str], ...]) -> tuple[tuple[str, str], ...]:
        with self._lock:
            if stale == self.headers():
                self.renewals += 1
        return self.headers()


def test_c_16_a_token_that_ran_out_is_renewed_once(tools: Tools) -> None:
    def handler(request: Received, peer: Peer) -> None:
        is_good = request.header("authorization") == "Bearer 1"
        peer.respond(200 if is_good else 401, DATA if is_good else b"")

    result = outcome_of(tools, handler, credentials=Renewing())
    assert stored(tools, result) == DATA


@pytest.mark.parametrize("credentials", [Renewing(), TOKEN, Fixed()])
def test_c_16_a_refused_sign_in_kills_no_job(tools: Tools, credentials: Any) -> None:
    result = outcome_of(tools, answering(401), credentials=credentials)
    assert isinstance(result, Again)
    assert (result.counted, result.trouble) == (False, True)
    assert result.reason.startswith("sign-in needed")


def test_c_16_without_a_token_nothing_is_asked(tools: Tools) -> None:
    class Without(Renewing):
        def headers(self) -> Any:
            return SignInFailed("sign-in needed: the token service answered 400")

    with serving(answering(200, DATA)) as server:
        result = download(from_server(server, credentials=Without()), tools)
        assert server.requests == []
    assert isinstance(result, Again)
    assert not result.counted


def trickling(request: Received, peer: Peer) -> None:
    peer.send(b"HTTP/1.1 200 X\r\ncontent-length: 100000\r\n\r\n")
    peer.trickle(every_s=0.05)


@pytest.mark.parametrize(
    "limits",
    [
        {"total_s": 1.0},
        {"total_s": None, "timeout_s": 1.0, "min_rate_bytes_s": 16384},
    ],
)
def test_c_17_a_trickle_is_cut_off(tools: Tools, limits: dict[str, Any]) -> None:
    began = time.monotonic()
    assert outcome_of(tools, trickling, **limits) == Again("too slow", trouble=True)
    assert 0.8 < time.monotonic() - began < 10


def test_c_17_headers_that_trickle_are_cut_off_too(tools: Tools) -> None:
    def slow_headers(request: Received, peer: Peer) -> None:
        peer.send(b"HTTP/1.1 200 X\r\nx-a: ")
        peer.trickle(every_s=0.05)

    assert outcome_of(tools, slow_headers, total_s=1.0) == Again("too slow", trouble=True)


def test_a_steady_file_above_the_rate_may_take_longer_than_the_span(tools: Tools) -> None:
    def steady(request: Received, peer: Peer) -> None:
        peer.send(b"HTTP/1.1 200 X\r\ncontent-length: 3000\r\n\r\n")
        for _ in range(30):
            peer.send(b"x" * 100)
            threading.Event().wait(0.05)

    result = outcome_of(tools, steady, timeout_s=1.0, min_rate_bytes_s=200)
    assert isinstance(result, Done)


def test_b_03_a_cancelled_download_stops_while_the_source_is_silent(tmp_path: Path) -> None:
    def silent(request: Received, peer: Peer) -> None:
        peer.send(b"HTTP/1.1 200 X\r\ncontent-length: 100000\r\n\r\nhalf")
        peer.hang()

    told: list[tuple[int, int | None]] = []

    def progress(done: int, total: int | None) -> Cancelled | None:
        told.append((done, total))
        return Cancelled("the file was deleted") if done else None

    began = time.monotonic()
    with tools_in(tmp_path, progress=progress) as tools:
        result = outcome_of(tools, silent)
    assert result == Again("the file was deleted", counted=False)
    assert time.monotonic() - began < 10
    assert told[-1] == (4, 100000)


def test_b_08_other_bytes_than_announced_are_not_taken(tools: Tools) -> None:
    result = outcome_of(tools, answering(200, b"x" * 1200), size_bytes=1000, sha256=SHA)
    assert result == Again("content does not match announcement, got 1200 bytes")
    result = outcome_of(tools, answering(200, b"x" * 1000), size_bytes=1000, sha256=SHA)
    assert result == Again("content does not match announcement, got 1000 bytes")


def test_b_08_a_source_that_rewrites_files_is_taken_with_a_note(tools: Tools) -> None:
    result = outcome_of(
        tools, answering(200, b"x" * 1200), size_bytes=1000, sha256=SHA, rewrites=True
    )
    assert isinstance(result, Done)
    assert "rewrites" in result.result.note


def test_a_source_that_is_away_is_trouble(tools: Tools) -> None:
    def reset(request: Received, peer: Peer) -> None:
        peer.reset()

    for result in (outcome_of(tools, reset), outcome_of(tools, answering(500))):
        assert isinstance(result, Again)
        assert result.trouble
    job = download_job("http://no-such-name.invalid/f", "no-such-name.invalid")
    result = download(job, tools)
    assert isinstance(result, Again)
    assert result.trouble


def test_the_stored_file_cannot_be_written_by_accident(tools: Tools) -> None:
    result = outcome_of(tools, answering(200, DATA))
    assert isinstance(result, Done)
    path = tools.blobs.path_of(result.result.sha256)
    assert path is not None
    assert oct(path.stat().st_mode)[-3:] == "440"

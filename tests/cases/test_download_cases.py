"""Cases C: downloads from real servers that misbehave, as far as the effect alone shows them."""

from __future__ import annotations

import gzip
import hashlib
import json
import resource
import threading
import time
import tracemalloc
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from pathlib import Path
from typing import Any

import pytest

from domain.outcomes import Again, Dead, Done
from jobs.download import Downloaded, DownloadJob, download
from jobs.outbound import Fixed
from jobs.tools import Cancelled, SignInFailed, Tools
from tests.effects import MIB, download_job, tools_in
from tests.servers import Handler, Peer, Received, Server, answering, in_turn, serving

FILES = Path(__file__).parent / "files"
DATA = bytes(range(256)) * 40
SHA = hashlib.sha256(DATA).hexdigest()
TOKEN = Fixed((("authorization", "Bearer tok-secret"),))


@pytest.fixture
def tools(tmp_path: Path) -> Iterator[Tools]:
    with tools_in(tmp_path) as made:
        yield made


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


@pytest.mark.req("D2")
def test_a_whole_file_is_stored_under_its_hash(tools: Tools) -> None:
    result = outcome_of(tools, answering(200, DATA), size_bytes=len(DATA), sha256=SHA)
    assert result == Done(Downloaded(SHA, len(DATA), "application/octet-stream"))
    assert stored(tools, result) == DATA


@pytest.mark.req("D2")
def test_c_01_not_there_yet_is_tried_again(tools: Tools) -> None:
    assert outcome_of(tools, answering(404)) == Again("404 at the source")


@pytest.mark.parametrize("status", [409, 423])
def test_c_02_a_lock_uses_up_no_attempts_and_waits_ever_longer(tools: Tools, status: int) -> None:
    waits = []
    for attempt in (1, 2, 9, 10, 1000):
        result = outcome_of(tools, answering(status), attempt=attempt)
        assert isinstance(result, Again)
        assert not result.counted
        waits.append(result.wait_s)
    assert waits == [2, 4, 512, 600, 600]


@pytest.mark.req("D2")
def test_c_03_a_short_body_is_no_file(tools: Tools) -> None:
    def short(request: Received, peer: Peer) -> None:
        peer.respond(200, b"x" * 600, length=1000)
        peer.close()

    assert outcome_of(tools, short) == Again("short body: 600 of 1000")


def test_c_03_a_chunked_body_without_its_end_is_no_file(tools: Tools) -> None:
    def cut(request: Received, peer: Peer) -> None:
        peer.send(b"HTTP/1.1 200 X\r\ntransfer-encoding: chunked\r\n\r\n258\r\n" + b"x" * 600)
        peer.send(b"\r\n")
        peer.close()

    assert outcome_of(tools, cut) == Again("short body: 600 of unknown")


def test_c_04_a_file_packed_in_transfer_is_stored_unpacked(tools: Tools) -> None:
    data = (b"0123456789" * 1000)[:10_000]
    packed = gzip.compress(data)
    result = outcome_of(
        tools,
        answering(200, packed, content_encoding="gzip"),
        size_bytes=10_000,
        sha256=hashlib.sha256(data).hexdigest(),
    )
    assert stored(tools, result) == data


def test_c_04_unpacking_stops_at_the_limit_in_little_memory(tools: Tools) -> None:
    bomb = gzip.compress(b"\0" * (200 * MIB))  # 200 kB
    tracemalloc.start()
    result = outcome_of(tools, answering(200, bomb, content_encoding="gzip"))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert result == Dead("larger than 50 MiB")
    assert peak < 8 * MIB


@pytest.mark.parametrize("packing", ["gzip", "deflate", "br"])
def test_damaged_packing_is_tried_again(tools: Tools, packing: str) -> None:
    result = outcome_of(tools, answering(200, gzip.compress(DATA)[:-12], content_encoding=packing))
    assert isinstance(result, Again)
    assert "packed" in result.reason


@pytest.mark.req("D3")
def test_c_05_another_port_gets_no_credentials(tools: Tools) -> None:
    with (
        serving(answering(200, DATA)) as storage,
        serving(answering(302, location=storage.url("/s?sig=1"))) as source,
    ):
        job = download_job(source.url("/f"), "127.0.0.1", credentials=TOKEN)
        result = download(job, tools)
    assert stored(tools, result) == DATA
    assert source.requests[0].header("authorization") == "Bearer tok-secret"
    assert storage.requests[0].header("authorization") == ""
    assert storage.requests[0].target == "/s?sig=1"


@pytest.mark.req("D3")
def test_c_05_a_listed_host_gets_the_credentials(tools: Tools) -> None:
    with (
        serving(answering(200, DATA)) as storage,
        serving(answering(307, location=storage.url("/s"))) as source,
    ):
        job = download_job(source.url("/f"), source.host, storage.host, credentials=TOKEN)
        result = download(job, tools)
    assert stored(tools, result) == DATA
    assert storage.requests[0].header("authorization") == "Bearer tok-secret"


@pytest.mark.req("D3")
@pytest.mark.parametrize(
    "place",
    [
        "http://127.0.0.1:1/",
        "http://169.254.169.254/",
        "http://[::1]/",
        "http://10.0.0.1/",
        "file:///etc/passwd",
        "http://localhost:1/",
    ],
)
def test_c_06_a_redirect_to_a_private_address_is_not_followed(tools: Tools, place: str) -> None:
    assert outcome_of(tools, answering(302, location=place)) == Dead("address not allowed")


@pytest.mark.req("D3")
@pytest.mark.parametrize(
    "url", ["http://10.0.0.1/f", "file:///etc/passwd", "http://u:p@127.0.0.1/", "ftp://x/", "", "x"]
)
def test_c_06_a_private_address_in_an_event_is_not_asked(tools: Tools, url: str) -> None:
    assert download(download_job(url), tools) == Dead("address not allowed")
    assert download(download_job(url, "files.example"), tools) == Dead("address not allowed")


def test_c_06_a_host_that_is_not_the_sources_is_not_asked(tools: Tools) -> None:
    with serving(answering(200, DATA)) as server:
        job = download_job(server.url(), "127.0.0.1:1")
        assert download(job, tools) == Dead("address not allowed")
        assert server.connections == 0


def test_redirects_without_end_are_left(tools: Tools) -> None:
    result = outcome_of(tools, answering(302, location="/again"))
    assert result == Again("more than 5 redirects at the source", trouble=True)


def test_c_07_a_fresh_link_replaces_one_that_has_run_out(tools: Tools) -> None:
    def handler(request: Received, peer: Peer) -> None:
        is_fresh = request.target == "/fresh?sig=2"
        peer.respond(200 if is_fresh else 403, DATA if is_fresh else b"expired")

    with serving(handler) as server:
        fresh = server.url("/fresh?sig=2")
        job = from_server(server, path="/old?sig=1", fresh_link=lambda job: fresh)
        assert stored(tools, download(job, tools)) == DATA
        again = from_server(server, path="/old?sig=1", attempt=2, fresh_link=lambda job: fresh)
        assert stored(tools, download(again, tools)) == DATA
        targets = [request.target for request in server.requests]
    assert targets == ["/old?sig=1", "/fresh?sig=2", "/fresh?sig=2"]
    assert "sig=1" not in repr(job)


def test_c_07_a_fresh_link_that_fails_too_is_asked_once(tools: Tools) -> None:
    with serving(answering(403)) as server:
        job = from_server(server, fresh_link=lambda job: server.url("/fresh"))
        result = download(job, tools)
        assert [request.target for request in server.requests] == ["/f", "/fresh"]
    assert isinstance(result, Again)


@pytest.mark.parametrize("status", [429, 503])
def test_c_08_a_stated_wait_is_for_all_of_the_source(tools: Tools, status: int) -> None:
    result = outcome_of(tools, answering(status, retry_after="120"))
    assert isinstance(result, Again)
    assert (result.wait_s, result.everyone) == (120, True)
    date = format_datetime(datetime.now(UTC) + timedelta(seconds=90), usegmt=True)
    result = outcome_of(tools, answering(status, retry_after=date))
    assert isinstance(result, Again)
    assert 85 <= (result.wait_s or 0) <= 90
    result = outcome_of(tools, answering(status, retry_after="soon"))
    assert isinstance(result, Again)
    assert (result.wait_s, result.everyone) == (None, False)


def broken_at_600(request: Received, peer: Peer) -> None:
    peer.respond(200, DATA[:600], length=1000, etag='"v1"', accept_ranges="bytes")
    peer.close()


def whole(request: Received, peer: Peer) -> None:
    peer.respond(200, DATA[:1000], etag='"v1"')


def ranged(request: Received, peer: Peer) -> None:
    peer.respond(206, DATA[600:1000], etag='"v1"', content_range="bytes 600-999/1000")


def ranged_as_200(request: Received, peer: Peer) -> None:
    peer.respond(200, DATA[600:1000], content_range="bytes 600-999/1000")


def changed(request: Received, peer: Peer) -> None:
    peer.respond(206, DATA[600:1000], etag='"v2"', content_range="bytes 600-999/1000")


@pytest.mark.parametrize("answer", [whole, ranged, ranged_as_200])
def test_c_09_a_broken_download_is_resumed_right_whatever_the_server_does(
    tools: Tools, answer: Handler
) -> None:
    with serving(in_turn(broken_at_600, answer)) as server:
        result = download(from_server(server), tools)
        second = server.requests[1]
    assert stored(tools, result) == DATA[:1000]
    assert (second.header("range"), second.header("if-range")) == ("bytes=600-", '"v1"')


def test_c_09_a_file_that_changed_in_between_is_not_pieced_together(tools: Tools) -> None:
    result = outcome_of(tools, in_turn(broken_at_600, changed))
    assert result == Again("the source sent another range than asked for")


def test_c_09_a_refused_range_is_read_again_from_the_start(tools: Tools) -> None:
    result = outcome_of(tools, in_turn(broken_at_600, answering(416), whole))
    assert stored(tools, result) == DATA[:1000]


def test_c_09_without_a_tag_or_hash_nothing_is_resumed(tools: Tools) -> None:
    def broken(request: Received, peer: Peer) -> None:
        peer.respond(200, DATA[:600], length=1000, accept_ranges="bytes")
        peer.close()

    assert outcome_of(tools, in_turn(broken, ranged)) == Again("short body: 600 of 1000")


def test_a_part_that_nobody_asked_for_is_no_file(tools: Tools) -> None:
    assert isinstance(outcome_of(tools, ranged), Again)
    assert isinstance(outcome_of(tools, answering(206, DATA)), Again)


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
    assert 0.8 < time.monotonic() - began < 3


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

    result = outcome_of(tools, steady, timeout_s=0.5, min_rate_bytes_s=1000)
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
    assert time.monotonic() - began < 5
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

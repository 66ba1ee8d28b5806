"""Cases C: downloads from real servers that misbehave, as far as the effect alone shows them."""

from __future__ import annotations

import gzip
import hashlib
import tracemalloc
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from pathlib import Path

import pytest

from domain.outcomes import Again, Dead, Done
from jobs.download import Downloaded, download
from jobs.tools import Tools
from tests.downloads import DATA, SHA, TOKEN, from_server, outcome_of, stored
from tests.effects import MIB, download_job, tools_in
from tests.servers import Handler, Peer, Received, answering, in_turn, serving


@pytest.fixture
def tools(tmp_path: Path) -> Iterator[Tools]:
    with tools_in(tmp_path) as made:
        yield made


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
    assert 60 <= (result.wait_s or 0) <= 90
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

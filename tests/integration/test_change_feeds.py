"""Change feeds walked over real HTTP, against servers that answer as the providers document."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from domain.feeds import FEEDS
from domain.outcomes import Again, Done
from jobs.changes import ChangesJob, Walked, walk
from jobs.changes.walk import MOST_PAGES
from jobs.outbound import Fixed
from jobs.tools import Header, Target, Tools
from tests.effects import tools_in
from tests.servers import Handler, Peer, Received, Server, serving

TOKEN = Fixed((("authorization", "Bearer tok-secret"),))
AT = "2026-11-30T10:00:00Z"


class Renewable:
    """A token that has run out, and the one after it."""

    def headers(self) -> tuple[Header, ...]:
        return (("authorization", "Bearer old"),)

    def renewed(self, stale: tuple[Header, ...]) -> tuple[Header, ...]:
        assert stale == self.headers()
        return (("authorization", "Bearer new"),)


@pytest.fixture
def tools(tmp_path: Path) -> Iterator[Tools]:
    with tools_in(tmp_path) as made:
        yield made


def job(server: Server, name: str, cursor: str = "", **more: Any) -> ChangesJob:
    fields: dict[str, Any] = {
        "scope": "b!1",
        "credentials": TOKEN,
        "target": Target((server.host,)),
    } | more
    return ChangesJob("s", FEEDS[name], server.url("").rstrip("/"), cursor=cursor, **fields)


def walked(found: object) -> Walked:
    assert isinstance(found, Done), found
    assert isinstance(found.result, Walked)
    return found.result


def graph(*, expired: str = "none", foreign: str = "") -> Handler:
    """Three pages: two with a next link, the last with the delta link."""

    def handler(request: Received, peer: Peer) -> None:
        parts = urlsplit(request.target)
        token = parse_qs(parts.query).get("token", ["0"])[0]
        if token == expired:
            peer.respond(410, b"{}")
            return
        number = int(token)
        host = foreign or f"http://{request.header('host')}"
        link = "@odata.nextLink" if number < 2 else "@odata.deltaLink"
        file = {"mimeType": "application/pdf", "hashes": {"sha256Hash": "AB" * 32}}
        item = {"id": f"F-{number}", "cTag": f"c{number}", "name": "a.pdf", "size": 3, "file": file}
        value: list[Any] = [
            item | {"lastModifiedDateTime": AT, "parentReference": {"driveId": "b!1"}},
            {"id": "folder", "name": "x", "folder": {}},
        ]
        if number == 2:
            value.append({"id": "F-9", "file": {}, "deleted": {"state": "deleted"}})
        page = {"value": value, link: f"{host}{parts.path}?token={number + 1}"}
        peer.respond(200, json.dumps(page).encode())

    return handler


@pytest.mark.req("F9")
def test_a_feed_is_read_to_its_end_and_gives_the_cursor_behind_it(tools: Tools) -> None:
    with serving(graph()) as server:
        found = walked(walk(job(server, "microsoft-graph"), tools))
        assert [request.target for request in server.requests] == [
            "/v1.0/drives/b!1/root/delta",
            "/v1.0/drives/b!1/root/delta?token=1",
            "/v1.0/drives/b!1/root/delta?token=2",
        ]
        assert {r.header("authorization") for r in server.requests} == {"Bearer tok-secret"}
    assert found.cursor == "/v1.0/drives/b!1/root/delta?token=3"
    assert not found.is_more
    told = [(e.action, e.file_id, e.version) for e in found.events]
    versions = [("version", f"F-{n}", f"c{n}") for n in range(3)]
    assert told == [*versions, ("deleted", "F-9", None)]
    assert found.events[0].sha256 == "ab" * 32
    assert {event.type for event in found.events} == {"feed"}


@pytest.mark.req("A7")
def test_a_second_walk_over_the_same_stretch_finds_the_same_events(tools: Tools) -> None:
    with serving(graph()) as server:
        first, second = (walked(walk(job(server, "microsoft-graph"), tools)) for _ in range(2))
    assert first.events == second.events
    assert len({event.event_id for event in first.events}) == 4


def test_a_cursor_that_has_run_out_begins_the_feed_anew(tools: Tools) -> None:
    stale = "/v1.0/drives/b!1/root/delta?token=77"
    with serving(graph(expired="77")) as server:
        found = walked(walk(job(server, "microsoft-graph", stale), tools))
    assert found.was_reset
    assert len(found.events) == 4


@pytest.mark.req("A3")
@pytest.mark.req("D3")
def test_an_answer_never_says_whom_to_ask_next(tools: Tools) -> None:
    with serving(graph(foreign="https://evil.example")) as server:
        found = walked(walk(job(server, "microsoft-graph"), tools))
        assert len(server.requests) == 3
    assert found.cursor.startswith("/v1.0/")


def test_a_token_that_has_run_out_is_renewed_once(tools: Tools) -> None:
    good = graph()

    def handler(request: Received, peer: Peer) -> None:
        if request.header("authorization") == "Bearer new":
            good(request, peer)
        else:
            peer.respond(401, b"{}")

    with serving(handler) as server:
        renewing = job(server, "microsoft-graph", credentials=Renewable())
        assert len(walked(walk(renewing, tools)).events) == 4
        assert isinstance(walk(job(server, "microsoft-graph"), tools), Again)


def test_a_throttled_feed_is_asked_again_when_it_says(tools: Tools) -> None:
    with serving(lambda _, peer: peer.respond(429, retry_after="120")) as server:
        found = walk(job(server, "google-drive", "5"), tools)
    assert isinstance(found, Again)
    assert (found.wait_s, found.everyone) == (120, True)


def test_what_was_read_before_a_page_failed_is_kept(tools: Tools) -> None:
    good = graph()

    def handler(request: Received, peer: Peer) -> None:
        if "token=2" in request.target:
            peer.respond(503, b"")
        else:
            good(request, peer)

    with serving(handler) as server:
        found = walked(walk(job(server, "microsoft-graph"), tools))
    assert found.is_more
    assert [event.file_id for event in found.events] == ["F-0", "F-1"]
    assert found.cursor.endswith("token=2")


def test_a_feed_without_end_is_left_at_a_limit_and_goes_on_from_there(tools: Tools) -> None:
    def handler(request: Received, peer: Peer) -> None:
        page = {"nextPageToken": "again", "changes": []}
        peer.respond(200, json.dumps(page).encode())

    with serving(handler) as server:
        found = walked(walk(job(server, "google-drive", "1"), tools))
        assert len(server.requests) == MOST_PAGES
    assert (found.is_more, found.cursor) == (True, "again")


def test_google_drive_tells_versions_removals_and_the_bin(tools: Tools) -> None:
    file = {"name": "a.pdf", "headRevisionId": "r1", "version": "17", "size": "3"}

    def handler(request: Received, peer: Peer) -> None:
        query = parse_qs(urlsplit(request.target).query)
        changes = [
            {"fileId": "F-1", "removed": False, "file": file | {"modifiedTime": AT}},
            {"fileId": "F-2", "removed": True, "time": AT},
            {"fileId": "F-3", "time": AT, "file": file | {"trashed": True}},
            {"fileId": "folder", "file": {"name": "no revision"}},
        ]
        start = request.target.endswith("/startPageToken")
        page: dict[str, Any] = {"startPageToken": "5"}
        if not start:
            assert query["pageToken"] == ["5"]
            page = {"newStartPageToken": "9", "changes": changes}
        peer.respond(200, json.dumps(page).encode())

    with serving(handler) as server:
        begun = walked(walk(job(server, "google-drive"), tools))
        assert (begun.events, begun.cursor) == ((), "5")
        found = walked(walk(job(server, "google-drive", begun.cursor), tools))
    assert [(e.action, e.file_id) for e in found.events] == [
        ("version", "F-1"),
        ("deleted", "F-2"),
        ("deleted", "F-3"),
    ]
    assert (found.events[0].order, found.events[0].size_bytes, found.cursor) == ("17", 3, "9")


def test_dropbox_goes_on_by_its_cursor_and_resets_at_409(tools: Tools) -> None:
    def handler(request: Received, peer: Peer) -> None:
        told = json.loads(request.body)
        if told.get("cursor") == "stale":
            peer.respond(409, b'{"error":{".tag":"reset"}}')
            return
        file = {".tag": "file", "id": "id:1", "rev": "r1", "name": "a.pdf", "size": 3}
        is_first = "path" in told
        entries = [file | {"server_modified": AT}] if is_first else [{".tag": "folder", "id": "x"}]
        page = {"entries": entries, "cursor": "c1" if is_first else "c2", "has_more": is_first}
        peer.respond(200, json.dumps(page).encode())

    with serving(handler) as server:
        found = walked(walk(job(server, "dropbox", "stale", scope=""), tools))
        assert json.loads(server.requests[1].body)["path"] == ""
    assert (found.was_reset, found.cursor) == (True, "c2")
    assert [(e.file_id, e.version) for e in found.events] == [("id:1", "r1")]


def test_box_ends_where_the_position_stays(tools: Tools) -> None:
    source = {"type": "file", "id": "17", "name": "a.pdf", "size": 3, "sequence_id": "2"}
    source |= {"file_version": {"id": "88"}}

    def handler(request: Received, peer: Peer) -> None:
        position = parse_qs(urlsplit(request.target).query)["stream_position"][0]
        upload = {"event_type": "ITEM_UPLOAD", "created_at": AT, "source": source}
        entries = [upload] if position == "100" else []
        page = {"entries": entries, "next_stream_position": 101}
        peer.respond(200, json.dumps(page).encode())

    with serving(handler) as server:
        found = walked(walk(job(server, "box", "100"), tools))
        assert len(server.requests) == 2
    assert [(e.action, e.version, e.order) for e in found.events] == [("version", "88", "2")]
    assert found.cursor == "101"


@pytest.mark.parametrize("name", FEEDS)
@pytest.mark.parametrize("body", [b"", b"<html>", b"{}", b"[]", b'{"value":7,"entries":7}'])
def test_an_answer_that_is_no_page_is_trouble_and_moves_no_cursor(
    tools: Tools, name: str, body: bytes
) -> None:
    with serving(lambda _, peer: peer.respond(200, body)) as server:
        assert isinstance(walk(job(server, name, "1"), tools), Again)

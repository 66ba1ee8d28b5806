"""What operators see and order over the API, on a real store behind a real server."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from app.store import tables as t
from tests.installations import SOURCE, STAMPED, Installation, event, found, installed
from tests.workings import claimed, deliver, process

WHY = {"reason": "the receiver asked for it"}


@pytest.fixture
def running(tmp_path: Path) -> Iterator[Installation]:
    with installed(tmp_path) as installation:
        yield installation


@pytest.fixture
def admin(running: Installation) -> str:
    return running.token()


def asked(running: Installation, token: str, path: str, **query: Any) -> Any:
    answer = running.api("GET", path, token, params=query)
    assert answer.status_code == 200, answer.text
    return answer.json()


def one(running: Installation, token: str, path: str, **query: Any) -> Any:
    (item,) = asked(running, token, path, **query)["items"]
    return item


@pytest.mark.req("F5")
def test_a_file_is_shown_with_versions_jobs_artifacts_and_messages(
    running: Installation, admin: str
) -> None:
    running.send(event())
    process(running)
    deliver(running)
    listed = one(running, admin, "/files", source="s", state="completed", q="A.PD")
    assert (listed["file_id"], listed["current"], listed["result"]) == ("f-1", "1", "1")
    whole = asked(running, admin, f"/files/{listed['id']}")
    (version,) = whole["versions"]
    assert (version["version"], version["state"], version["recipe"]) == ("1", "completed", "all")
    assert [job["kind"] for job in version["jobs"]] == ["download", "transform"]
    assert version["jobs"][0]["attempts"][0]["outcome"] == "done"
    assert [artifact["name"] for artifact in version["artifacts"]] == ["original", "sum"]
    (message,) = version["messages"]
    assert (message["state"], message["reference"]) == ("delivered", "4711")
    attempt = message["attempts"][0]
    assert (attempt["url"], attempt["status"]) == ("https://erp.example/x", 503)


@pytest.mark.req("F4")
@pytest.mark.parametrize("what", ["id", "file_id", "pair", "message", "receipt", "reference"])
def test_a_file_is_found_by_anything_that_names_it(
    running: Installation, admin: str, what: str
) -> None:
    receipt = running.send(event()).json()["receipt"]["id"]
    running.send(event(id="evt-2", file_id="f-2", file_name="b.pdf", file_version=2))
    process(running)
    deliver(running)
    row = found(running, t.messages, version="1")[0]
    names = {
        "id": row.stream,
        "file_id": "f-1",
        "pair": "s/f-1",
        "message": row.id,
        "receipt": receipt,
        "reference": "4711",
    }
    items = asked(running, admin, "/files", q=names[what])["items"]
    wanted = {"f-1", "f-2"} if what == "reference" else {"f-1"}
    assert {item["file_id"] for item in items} == wanted


@pytest.mark.req("F6")
def test_a_list_is_read_page_by_page_and_nothing_is_missed(
    running: Installation, admin: str
) -> None:
    for n in range(7):
        running.send(event(id=f"evt-{n}", file_id=f"f-{n}"))
    for path, key in (("/files", "id"), ("/jobs", "id"), ("/source-events", "event")):
        seen: list[str] = []
        cursor: str | None = ""
        while cursor is not None:
            page = asked(running, admin, path, limit=3, cursor=cursor)
            seen += [item[key] for item in page["items"]]
            cursor = page["next"]
        assert len(seen) == len(set(seen)) == 7
    for cursor in ("nonsense", "WzFd", "e30"):
        answer = running.api("GET", "/files", admin, params={"cursor": cursor})
        assert (answer.status_code, answer.json()["type"]) == (400, "invalid-request")


@pytest.mark.req("F3")
def test_a_file_is_shown_as_of_a_position_and_a_time(running: Installation, admin: str) -> None:
    running.send(event())
    position = asked(running, admin, "/stats")["position"]
    stream = process(running)
    then = asked(running, admin, f"/files/{stream}", at=position)
    assert then["versions"][0]["state"] == "received"
    assert asked(running, admin, f"/files/{stream}")["versions"][0]["state"] == "notifying"
    now = asked(running, admin, f"/files/{stream}", at="2026-11-30T10:15:30Z")
    assert now["versions"][0]["state"] == "notifying"
    assert running.api("GET", f"/files/{stream}?at=2020-01-01", admin).status_code == 404
    assert running.api("GET", f"/files/{stream}?at=then", admin).status_code == 400


@pytest.mark.req("C1")
def test_what_runs_is_shown_as_running(running: Installation, admin: str) -> None:
    running.send(event())
    (job,) = found(running, t.jobs)
    claimed(running, job.id, is_job=True)
    assert one(running, admin, "/jobs", state="running")["progress"] is not None
    assert asked(running, admin, "/jobs", state="ready")["items"] == []
    file = one(running, admin, "/files", state="downloading")
    assert file["versions"][0]["state"] == "downloading"
    assert asked(running, admin, "/files", state="received")["items"] == []


@pytest.mark.req("B8")
def test_a_body_is_masked_and_in_full_only_for_an_admin_which_is_recorded(
    running: Installation, admin: str
) -> None:
    running.send(event(file_name="Geheim.pdf"))
    delivery = one(running, admin, "/deliveries")["id"]
    masked = asked(running, admin, f"/deliveries/{delivery}")
    assert masked["body_is_masked"]
    assert "Geheim" not in masked["body"]
    operator = running.token("operator")
    assert asked(running, operator, f"/deliveries/{delivery}", full=True)["body_is_masked"]
    full = asked(running, admin, f"/deliveries/{delivery}", full=True)
    assert json.loads(full["body"])["file"]["name"] == "Geheim.pdf"
    assert one(running, admin, "/audit")["type"] == "BodyShown"


@pytest.mark.req("F7")
def test_whoever_is_limited_to_a_source_sees_nothing_of_another(tmp_path: Path) -> None:
    with installed(tmp_path, SOURCE + STAMPED) as running:
        running.send(event())
        stream = process(running)
        theirs = running.token("operator", "source:t")
        (job, *_), (message,) = found(running, t.jobs), found(running, t.messages)
        delivery = one(running, running.token(), "/deliveries")["id"]
        receipt = found(running, t.receipts)[0].event.replace("evt_", "rcp_")
        for path in ("/files", "/jobs", "/messages", "/source-events", "/deliveries", "/log"):
            assert asked(running, theirs, path)["items"] == []
        artifact = found(running, t.artifacts)[0].id
        for path in (
            f"/files/{stream}",
            f"/jobs/{job.id}",
            f"/messages/{message.id}",
            f"/deliveries/{delivery}",
            f"/receipts/{receipt}",
            f"/artifacts/{artifact}",
        ):
            assert running.api("GET", path, theirs).status_code == 404, path
        assert asked(running, theirs, f"/files/{stream}/log")["items"] == []
        assert asked(running, theirs, "/stats")["files"] == {}
        for path, status in (
            ("/sources/s/pause", 404),
            ("/sources/t/pause", 200),
            ("/destinations/erp/pause", 403),
            ("/pause", 403),
        ):
            assert running.api("POST", path, theirs, json=WHY).status_code == status, path


@pytest.mark.req("F7")
def test_a_receiver_sees_its_feed_its_messages_and_their_artifacts_only(
    running: Installation,
) -> None:
    running.send(event())
    stream = process(running)
    receiver = running.token("receiver", "destination:erp")
    other = running.token("receiver", "destination:crm")
    item = one(running, receiver, "/feed/erp")
    assert item["body"]["data"]["file_id"] == "f-1"
    address = item["body"]["data"]["artifacts"][0]["url"]
    path = address[address.index("/artifacts") :]
    assert running.api("GET", path, receiver).content == b"hello"
    assert asked(running, receiver, f"/messages/{item['id']}")["attempts"] == []
    for theirs in (path, f"/messages/{item['id']}", "/feed/erp"):
        assert running.api("GET", theirs, other).status_code == 404
    for path in ("/files", f"/files/{stream}", "/log", "/stats", "/deliveries"):
        assert running.api("GET", path, receiver).status_code == 403
    viewer = running.token("viewer")
    assert running.api("POST", "/pause", viewer, json=WHY).status_code == 403


@pytest.mark.req("E9")
def test_the_feed_gives_each_message_once_in_order(running: Installation, admin: str) -> None:
    seen: list[str] = []
    cursor = ""
    for n in range(3):
        running.send(event(id=f"evt-{n}", file_version=n + 1))
        process(running, content=b"%d" % n)
        page = asked(running, admin, "/feed/erp", after=cursor)
        seen += [item["id"] for item in page["items"]]
        cursor = page["next"]
    assert asked(running, admin, "/feed/erp", after=cursor)["items"] == []
    assert seen == [item["id"] for item in asked(running, admin, "/feed/erp")["items"]]
    assert len(set(seen)) == 3
    for wrong in ("x", "1", "9.1", "1.99999"):
        assert running.api("GET", "/feed/erp", admin, params={"after": wrong}).status_code == 400


@pytest.mark.req("D4")
def test_an_artifact_comes_whole_in_ranges_and_never_as_a_page(
    running: Installation, admin: str
) -> None:
    running.send(event(file_name='../x"\r\nset-cookie: a=b;Rechnung ß.pdf'))
    process(running, content=b"0123456789")
    row = found(running, t.artifacts, name="original")[0]
    path = f"/artifacts/{row.id}"
    whole = running.api("GET", path, admin)
    assert (whole.status_code, whole.content) == (200, b"0123456789")
    assert whole.headers["etag"] == f'"{row.sha256}"'
    assert whole.headers["x-content-type-options"] == "nosniff"
    assert whole.headers["content-security-policy"].startswith("sandbox")
    assert "set-cookie" not in whole.headers
    assert "/" not in whole.headers["content-disposition"]
    for asked_for, status, content in (
        ("bytes=2-4", 206, b"234"),
        ("bytes=7-", 206, b"789"),
        ("bytes=-3", 206, b"789"),
        ("bytes=0-99", 206, b"0123456789"),
        ("bytes=0-1,3-4", 200, b"0123456789"),
        ("bytes=10-", 416, None),
    ):
        answer = running.api("GET", path, admin, headers={"range": asked_for})
        assert answer.status_code == status, asked_for
        assert content is None or answer.content == content
    known = {"if-none-match": whole.headers["etag"]}
    assert running.api("GET", path, admin, headers=known).status_code == 304
    assert running.api("GET", "/artifacts/art_x", admin).status_code == 404
    assert running.http.get(f"/api/v1{path}").status_code == 401


@pytest.mark.req("F4")
def test_the_log_is_followed_live_from_where_it_was_left(running: Installation, admin: str) -> None:
    running.send(event())
    start = asked(running, admin, "/stats")["position"]
    headers = {
        "authorization": f"Bearer {admin}",
        "accept": "text/event-stream",
        "last-event-id": str(start),
    }
    with running.http.stream("GET", "/api/v1/log", headers=headers) as answer:
        assert answer.headers["content-type"].startswith("text/event-stream")
        running.send(event(id="evt-2", file_id="f-2"))
        lines = answer.iter_lines()
        data = next(line for line in lines if line.startswith("data: "))
    told = json.loads(data.removeprefix("data: "))
    assert (told["position"], told["type"]) == (start + 1, "VersionReported")


@pytest.mark.req("F1")
def test_a_stream_that_is_followed_does_not_hold_up_the_stop(tmp_path: Path) -> None:
    with installed(tmp_path) as running:
        headers = {"authorization": f"Bearer {running.token()}", "accept": "text/event-stream"}
        with running.http.stream("GET", "/api/v1/log", headers=headers) as answer:
            next(answer.iter_lines())
            assert running.server.stop(grace_s=10)


@pytest.mark.req("F6")
def test_the_api_is_described_as_openapi(running: Installation) -> None:
    described = running.http.get("/schema/openapi.json").json()
    assert described["openapi"].startswith("3.1")
    paths = described["paths"]
    for path in ("/api/v1/files", "/api/v1/files/{file}/reprocess", "/hooks/{source}", "/metrics"):
        assert path in paths, path
    assert set(described["webhooks"]) >= {"file.version.completed", "file.deleted"}
    assert described["components"]["securitySchemes"]["bearer"]["scheme"] == "bearer"


@pytest.mark.req("A8")
def test_a_receipt_says_what_was_answered_and_how_it_stands(
    running: Installation, admin: str
) -> None:
    answered = running.send(event())
    receipt = answered.json()["receipt"]
    shown = asked(running, admin, answered.headers["location"].removeprefix("/api/v1"))
    assert {key: shown[key] for key in receipt} == receipt
    assert shown["state"] == "received"
    process(running)
    deliver(running)
    told = one(running, admin, "/source-events", event_id="evt-1")
    assert (told["state"], told["file_id"], told["version"]) == ("processed", "f-1", "1")
    assert [artifact["name"] for artifact in told["result"]] == ["original", "sum"]
    assert running.api("GET", "/receipts/rcp_nothing", admin).status_code == 404

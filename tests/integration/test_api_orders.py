"""What operators order over the API, on a real store behind a real server."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from app.store import tables as t
from domain.outcomes import Dead, Unclear
from tests.installations import SOURCE, Installation, count, event, found, installed
from tests.workings import deliver, finish_job, finish_message, process

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


@pytest.mark.req("F2")
def test_a_dead_job_is_seen_by_cause_tried_out_and_retried(
    running: Installation, admin: str
) -> None:
    running.send(event())
    (job,) = found(running, t.jobs)
    finish_job(running, job.id, Dead(reason="404, gone for good"))
    cause = one(running, admin, "/dead-letters")
    assert (cause["kind"], cause["error"], cause["count"]) == ("job", "404, gone for good", 1)
    assert asked(running, admin, "/status")["ok"] is False
    dry = running.api("POST", "/dead-letters/retry", admin, json=WHY | {"dry_run": True}).json()
    assert (dry["dry_run"], dry["done"], dry["ids"]) == (True, 1, [job.id])
    assert found(running, t.jobs)[0].state == "dead"
    done = running.api("POST", "/dead-letters/retry", admin, json=WHY).json()
    assert (done["dry_run"], done["done"]) == (False, 1)
    assert found(running, t.jobs)[0].state == "ready"
    (order,) = asked(running, admin, "/audit")["items"]
    assert (order["type"], order["cause"]["reason"]) == ("JobRetried", WHY["reason"])
    assert order["cause"]["operator"] == "root"


@pytest.mark.req("F2")
def test_dead_letters_are_discarded_by_filter(running: Installation, admin: str) -> None:
    for n in range(3):
        running.send(event(id=f"evt-{n}", file_id=f"f-{n}"))
    for n, job in enumerate(found(running, t.jobs)):
        finish_job(running, job.id, Dead(reason=f"cause {n % 2}"))
    body = WHY | {"filter": {"kind": "job", "error": "cause 0"}}
    assert running.api("POST", "/dead-letters/discard", admin, json=body).json()["done"] == 2
    assert sorted(row.state for row in found(running, t.jobs)) == ["dead", "discarded", "discarded"]
    wrong = WHY | {"filter": {"kinds": "job"}}
    assert running.api("POST", "/dead-letters/discard", admin, json=wrong).status_code == 400


@pytest.mark.req("F6")
def test_an_order_under_one_key_is_given_once(running: Installation, admin: str) -> None:
    running.send(event())
    (job,) = found(running, t.jobs)
    finish_job(running, job.id, Dead(reason="x"))
    key = {"Idempotency-Key": "k-1"}
    path = f"/jobs/{job.id}/retry"
    answers = [running.api("POST", path, admin, json=WHY, headers=key) for _ in range(2)]
    assert [a.status_code for a in answers] == [200, 200]
    assert (
        answers[0].json() == answers[1].json() == {"status": "recorded", "events": ["JobRetried"]}
    )
    assert running.api("POST", path, admin, json=WHY).status_code == 409
    other = running.api("POST", f"/jobs/{job.id}/cancel", admin, json=WHY, headers=key)
    assert (other.status_code, other.json()["type"]) == (422, "idempotency-conflict")


@pytest.mark.req("F2")
def test_an_order_needs_a_reason_and_a_job(running: Installation, admin: str) -> None:
    assert running.api("POST", "/jobs/job_x/retry", admin, json={}).status_code == 400
    assert running.api("POST", "/jobs/job_x/retry", admin, json={"reason": ""}).status_code == 400
    gone = running.api("POST", "/jobs/job_x/retry", admin, json=WHY)
    assert (gone.status_code, gone.json()["type"]) == (404, "not-found")


@pytest.mark.req("F2")
def test_a_job_is_cancelled(running: Installation, admin: str) -> None:
    running.send(event())
    (job,) = found(running, t.jobs)
    assert running.api("POST", f"/jobs/{job.id}/cancel", admin, json=WHY).status_code == 200
    assert asked(running, admin, f"/jobs/{job.id}")["state"] == "cancelled"


@pytest.mark.req("E5")
def test_an_unclear_message_is_resolved_and_a_delivered_one_sent_again(
    running: Installation, admin: str
) -> None:
    running.send(event())
    process(running)
    (message,) = found(running, t.messages)
    finish_message(running, message.id, Unclear(reason="no answer"))
    shown = asked(running, admin, f"/messages/{message.id}")
    assert (shown["state"], json.loads(shown["body"])["data"]["file_id"]) == ("unclear", "f-1")
    body = WHY | {"outcome": "delivered"}
    answer = running.api("POST", f"/messages/{message.id}/resolve", admin, json=body)
    assert answer.json()["events"] == ["MessageResolved"]
    assert one(running, admin, "/messages", state="delivered")["id"] == message.id
    again = running.api("POST", f"/messages/{message.id}/redeliver", admin, json=WHY)
    assert again.status_code == 200
    assert one(running, admin, "/messages", state="pending")["id"] == message.id
    bad = running.api("POST", f"/messages/{message.id}/resolve", admin, json=WHY | {"outcome": "x"})
    assert bad.status_code == 400


@pytest.mark.req("A8")
def test_a_conflict_is_accepted_as_new_or_dismissed_once(tmp_path: Path) -> None:
    with installed(tmp_path, SOURCE) as running:
        admin = running.token()
        running.send(event())
        running.send(event(file_id="f-2"))
        running.send(event(file_id="f-3"))
        items = asked(running, admin, "/deliveries", verdict="conflict")["items"]
        newest, oldest = (item["id"] for item in items)
        taken = running.api("POST", f"/deliveries/{oldest}/accept-as-new", admin, json=WHY)
        assert taken.status_code == 200, taken.text
        left = running.api("POST", f"/deliveries/{newest}/dismiss", admin, json=WHY)
        assert left.status_code == 200
        for path in (f"{oldest}/dismiss", f"{newest}/accept-as-new"):
            assert running.api("POST", f"/deliveries/{path}", admin, json=WHY).status_code == 409
        assert {file.file_id for file in found(running, t.files)} == {"f-1", "f-2"}
        assert asked(running, admin, "/status")["ok"] is True
        first = asked(running, admin, "/deliveries", verdict="accepted")["items"][-1]["id"]
        assert (
            running.api("POST", f"/deliveries/{first}/dismiss", admin, json=WHY).status_code == 409
        )


@pytest.mark.req("F3")
def test_reprocess_is_refused_where_nothing_changed_and_named_dry(
    running: Installation, admin: str
) -> None:
    running.send(event())
    stream = process(running)
    path = f"/files/{stream}/reprocess"
    dry = running.api("POST", path, admin, json=WHY | {"dry_run": True}).json()
    assert (dry["would"], dry["jobs"]) == (False, [])
    assert "not changed" in dry["reason"]
    refused = running.api("POST", path, admin, json=WHY)
    assert (refused.status_code, refused.json()["code"]) == (409, "nothing-to-do")
    unknown = running.api("POST", path, admin, json=WHY | {"recipe": "nobody"})
    assert unknown.status_code == 422


@pytest.mark.req("F3")
def test_reprocess_under_a_changed_recipe_names_its_work_first(tmp_path: Path) -> None:
    with installed(tmp_path) as running:
        running.send(event())
        stream = process(running)
        deliver(running)
    with installed(tmp_path, steps='{ name = "text", use = "text" }') as running:
        admin = running.token()
        path = f"/files/{stream}/reprocess"
        dry = running.api("POST", path, admin, json=WHY | {"dry_run": True}).json()
        assert dry["would"]
        assert [job.partition(":")[0] for job in dry["jobs"]] == ["text"]
        assert count(running, t.jobs) == 2
        done = running.api("POST", path, admin, json=WHY)
        assert done.status_code == 200
        assert {row.id for row in found(running, t.jobs, state="ready")} == {
            job.partition(": ")[2] for job in dry["jobs"]
        }


@pytest.mark.req("B9")
def test_a_file_on_hold_is_not_erased_and_an_erased_one_shows_nothing(
    running: Installation, admin: str
) -> None:
    running.send(event(file_name="Geheim.pdf"))
    stream = process(running)
    assert running.api("POST", f"/files/{stream}/hold", admin, json=WHY).status_code == 200
    held = running.api("POST", f"/files/{stream}/erase", admin, json=WHY)
    assert (held.status_code, held.json()["code"]) == (409, "held")
    assert running.api("POST", f"/files/{stream}/release", admin, json=WHY).status_code == 200
    operator = running.token("operator")
    assert running.api("POST", f"/files/{stream}/erase", operator, json=WHY).status_code == 403
    assert running.api("POST", f"/files/{stream}/erase", admin, json=WHY).status_code == 200
    for path in (f"/files/{stream}", "/source-events", f"/files/{stream}/log", "/deliveries"):
        assert "Geheim" not in running.api("GET", path, admin).text


@pytest.mark.req("F2")
def test_a_part_is_paused_and_resumed_with_a_reason(running: Installation, admin: str) -> None:
    for path in ("/sources/s", "/destinations/erp", "/recipes/all", "/steps/sum", ""):
        assert running.api("POST", f"{path}/pause", admin, json=WHY).status_code == 200, path
    assert set(asked(running, admin, "/status")["paused"]) == {
        "source:s",
        "destination:erp",
        "recipe:all",
        "step:sum",
        "all",
    }
    assert one(running, admin, "/sources")["paused"]["reason"] == WHY["reason"]
    assert running.send(event()).status_code == 202
    for path in ("/sources/s", "/destinations/erp", "/recipes/all", "/steps/sum", ""):
        assert running.api("POST", f"{path}/resume", admin, json=WHY).status_code == 200
    assert count(running, t.controls) == 0
    assert running.api("POST", "/sources/nobody/pause", admin, json=WHY).status_code == 404
    assert len(asked(running, admin, "/audit")["items"]) == 10

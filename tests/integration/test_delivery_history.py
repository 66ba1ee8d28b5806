"""What is kept of attempts, and how it is found: headers without secrets, timing, percentiles."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from pathlib import Path

import pytest

from app.store import breakers
from app.store import tables as t
from app.store.engine import Store
from app.store.reading import work
from app.store.reading.pages import Ask
from app.store.reading.work import WorkFilter
from domain.breaker import Breaker, BreakerPolicy, after, dump
from domain.commands import Accepted
from domain.outcomes import Dead, Done
from jobs.notify import notify, signer
from jobs.outbound import Fixed
from jobs.tools import Tools
from tests.effects import notify_job, tools_in
from tests.installations import NOW, event, found, installed
from tests.servers import answering, serving
from tests.workings import finish_message, process

NEW = "whsec_" + base64.b64encode(b"n" * 32).decode()


@pytest.fixture
def tools(tmp_path: Path) -> Iterator[Tools]:
    with tools_in(tmp_path) as made:
        yield made


@pytest.mark.req("E8")
def test_an_attempt_tells_what_was_sent_without_its_secrets_and_where_the_time_went(
    tools: Tools,
) -> None:
    credentials = Fixed((("authorization", "Bearer tok-secret-value"),))
    own = (("X-Company", "acme"), ("X-Api-Key", "k-123456"))
    with serving(answering(204)) as server:
        job = notify_job(server.url("/"), sign=signer((NEW,)), credentials=credentials, headers=own)
        first, second = notify(job, tools)[0], notify(job, tools)[0]
    shown = dict(first.request_headers)
    assert (shown["webhook-id"], shown["idempotency-key"]) == ("msg_1", "msg_1")
    assert (shown["X-Company"], shown["X-Api-Key"]) == ("acme", "***")
    assert (shown["authorization"], shown["webhook-signature"]) == ("***", "***")
    assert "tok-secret-value" not in repr(first)
    assert first.timing is not None
    assert second.timing is not None
    parts = (first.timing.dns_ms, first.timing.connect_ms, first.timing.first_byte_ms)
    assert all(part is not None and part >= 0 for part in parts)
    # The second goes over the same connection.
    assert (second.timing.dns_ms, second.timing.connect_ms) == (None, None)
    assert second.timing.first_byte_ms is not None


@pytest.mark.req("E8")
def test_the_text_of_an_answer_is_found_on_both_databases(store: Store) -> None:
    said = '{"response_body":"{\\"error\\":\\"kein \u00c4rger\\"}"}'.encode()
    assert said == b'{"response_body":"{\\"error\\":\\"kein \xc3\x84rger\\"}"}'
    with store.writing.begin() as connection:
        for name, exchange in (("msg_1", said), ("msg_2", b"{}"), ("msg_3", None)):
            connection.execute(t.messages.insert(), message_row(name))
            connection.execute(t.attempts.insert(), attempt_row(name, exchange))
    with store.read() as connection:
        for text, wanted in (('"error":"kein \u00c4', ["msg_1"]), ("kein B", []), ("%", [])):
            page = work.messages(connection, WorkFilter(answer=text), Ask(10))
            assert [item.id for item in page.items] == wanted


def message_row(name: str) -> dict[str, object]:
    texts = dict.fromkeys(("stream", "source", "type", "version", "error", "reference"), "")
    numbers = ("sequence", "ordered_ms", "due_ms", "ended_ms", "attempts", "epoch", "run")
    return {
        **texts,
        **dict.fromkeys(numbers, 0),
        "id": name,
        "destination": "erp",
        "state": "delivered",
    }


def attempt_row(name: str, exchange: bytes | None) -> dict[str, object]:
    texts = dict.fromkeys(("stream", "owner", "outcome", "error", "scope"), "")
    numbers = dict.fromkeys(("number", "epoch", "started_ms"), 0)
    return {**texts, **numbers, "id": int(name[4:]), "work": name, "exchange": exchange}


@pytest.mark.req("E8")
def test_the_api_tells_percentiles_and_finds_messages_by_answer_and_time(tmp_path: Path) -> None:
    with installed(tmp_path) as running:
        running.send(event())
        running.send(event(id="evt-2", file_id="f-2"))
        process(running)
        first, second = found(running, t.messages, state="pending")
        finish_message(running, first.id, Dead("answered 422"))
        finish_message(running, second.id, Done(Accepted("4711")))
        token = running.token("viewer")

        def ids(query: str) -> list[str]:
            items = running.api("GET", f"/messages?{query}", token).json()["items"]
            return sorted(item["id"] for item in items)

        both = sorted((first.id, second.id))
        assert ids("answer=erp.example") == both
        assert ids("answer=erp.example&in_state=") == both
        assert ids("answer=nowhere") == []
        assert ids("since=2026-11-30T00:00:00Z") == both
        assert ids("until=2026-11-30T00:00:00Z") == []
        refused = running.api("GET", "/messages?since=yesterday", token)
        assert refused.status_code == 400
        (place,) = running.api("GET", "/destinations", token).json()["items"]
        page = running.http.get("/metrics").text
        assert 'laufzettel_breaker_open{destination="erp"}' not in page
        broken = after(Breaker(BreakerPolicy(consecutive=1)), success=False, now=NOW)
        running.ledger.operate(lambda c, ms: breakers.save(c, "destination:erp", dump(broken), ms))
        assert 'laufzettel_breaker_open{destination="erp"} 1.0' in running.http.get("/metrics").text
        (cut,) = running.api("GET", "/destinations", token).json()["items"]
        needs = running.api("GET", "/status", token).json()["needs"]
    assert (cut["breaker"], cut["breaker_since"]) == ("open", "2026-11-30T10:15:30Z")
    assert [turn["to"] for turn in cut["breaker_turns"]] == ["open"]
    (reason,) = [need["reason"] for need in needs if need["what"] == "breaker"]
    assert reason.startswith("open since 2026")
    assert (place["p50_ms"], place["p95_ms"], place["p99_ms"]) == (0, 0, 0)
    assert (place["breaker"], place["breaker_since"], place["breaker_turns"]) == (
        "closed",
        None,
        [],
    )

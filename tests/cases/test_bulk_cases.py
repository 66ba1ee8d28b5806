"""Cases of many dead letters at once: seen, tried again and cleared, while all else goes on."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest

from app.clock import SystemClock, SystemDice
from app.compose import Process, Refused, compose_run
from app.ledger.requests import Finish
from app.store import tables as t
from app.store.leases import Hold, Lease
from app.web.access import Access, TokenWish
from domain.commands import Accepted, Cause, FinishMessage
from domain.outcomes import Dead, Done
from domain.schedule import RetryPolicy
from tests import claiming
from tests import runtimes as r
from tests.outboxes import pile_up
from tests.servers import Server, answering, closed_port, serving

pytestmark = pytest.mark.usefixtures("either_database")
WHY = {"reason": "the receiver is back"}
DEAD, DELIVERED = 300, 700
MANY = 1500


@dataclass
class Crowd:
    """A process with many messages whose work was done by hand, and a client of it."""

    process: Process
    erp: Server
    http: httpx.Client

    def ask(self, path: str, **query: Any) -> Any:
        answer = self.http.get(f"/api/v1{path}", params=query)
        assert answer.status_code == 200, answer.text
        return answer.json()

    def order(self, path: str, key: str = "", **body: Any) -> Any:
        headers = {"Idempotency-Key": key} if key else {}
        answer = self.http.post(f"/api/v1{path}", json=WHY | body, headers=headers)
        assert answer.status_code == 200, answer.text
        return answer.json()

    def states(self) -> Counter[str]:
        """Messages by state; what is being sent counts as pending."""
        return Counter(self.ask("/stats")["messages"])


@pytest.fixture
def crowd(either_database: None, tmp_path: Path) -> Iterator[Crowd]:
    port = closed_port()
    with serving(answering(204)) as erp:
        config = r.configured(
            tmp_path,
            source="127.0.0.1:1",
            destination=erp.url("/"),
            recipe="transforms = []",
            installation=f'listen = "127.0.0.1:{port}"',
            erp='rate = "100/s"\nconcurrency = 8',
        )
        process = compose_run(config)
        assert not isinstance(process, Refused), process
        process.start()
        try:
            access = Access(process.base.ledger, SystemClock(), SystemDice())
            token = access.create(TokenWish("ada", "operator"), Cause("system")).token
            with httpx.Client(
                base_url=f"http://127.0.0.1:{port}",
                headers={"authorization": f"Bearer {token}"},
                timeout=60,
            ) as http:
                yield Crowd(process, erp, http)
        finally:
            process.stop(grace_s=1)


def end_messages(crowd: Crowd, dead: int, reasons: tuple[str, ...] = ("answered 422: no",)) -> None:
    """End all open messages by hand: so many dead, the others delivered."""
    ledger = crowd.process.base.ledger

    def claim(connection: Any, now_ms: int) -> list[Lease]:
        hold = Hold("test", ledger.book.incarnation, now_ms, 60_000)
        found = [
            claiming.claim_message(connection, row.id, hold)
            for row in r.rows(crowd.process.base.store, t.messages)
            if row.state == "pending"
        ]
        return [lease for lease in found if lease is not None]

    ends: list[Future[Any]] = []
    for number, lease in enumerate(ledger.operate(claim)):
        outcome = Dead(reasons[number % len(reasons)]) if number < dead else Done(Accepted(""))
        command = FinishMessage(
            stream=lease.stream,
            cause=Cause("attempt"),
            message=lease.id,
            epoch=lease.epoch,
            outcome=outcome,
            retry=RetryPolicy(),
            reached=True,
        )
        word = "dead" if number < dead else "done"
        ends.append(
            ledger.submit(Finish(command=command, incarnation=lease.incarnation, outcome=word))
        )
        if len(ends) % 500 == 0:
            ends[-1].result(60)
    for end in ends:
        end.result(60)


@pytest.mark.req("F2", "F6")
def test_g_05_all_dead_letters_of_a_destination_are_tried_again_at_its_rate(crowd: Crowd) -> None:
    r.pause(crowd.process, "all")
    pile_up(crowd.process.base.ledger, [f"F-{n}" for n in range(DEAD + DELIVERED)])
    end_messages(crowd, DEAD)
    assert crowd.states() == {"dead": DEAD, "delivered": DELIVERED}
    crowd.order("/resume")
    delivered = {m.id for m in r.messages_in(crowd.process, "delivered")}

    wanted = {"kind": "message", "name": "erp"}
    preview = crowd.order("/dead-letters/retry", dry_run=True, filter=wanted)
    assert (preview["matched"], preview["done"], preview["refused"]) == (DEAD, DEAD, {})
    assert crowd.erp.requests == []

    began_s = time.monotonic()
    first = crowd.order("/dead-letters/retry", "key-1", filter=wanted)
    assert crowd.order("/dead-letters/retry", "key-1", filter=wanted) == first
    assert first["done"] == DEAD
    r.until(lambda: len(crowd.erp.requests) >= 20)
    crowd.order("/destinations/erp/pause")
    stopped_s = time.monotonic()
    r.until(lambda: not crowd.process.worker.claims, within_s=5)
    out = len(crowd.erp.requests)
    assert time.monotonic() - stopped_s < 5
    states = crowd.states()
    assert states["delivered"] - DELIVERED == out
    assert out < DEAD
    crowd.order("/destinations/erp/resume")
    while crowd.states()["delivered"] < DEAD + DELIVERED:
        assert sum(crowd.states().values()) == DEAD + DELIVERED
        assert time.monotonic() - began_s < 60
    assert time.monotonic() - began_s > (DEAD - 200) / 100
    ids = Counter(request.header("webhook-id") for request in crowd.erp.requests)
    assert (len(ids), set(ids.values())) == (DEAD, {1})
    assert not delivered & ids.keys()
    events = Counter(row.type for row in r.rows(crowd.process.base.store, t.events))
    assert events["MessageResolved"] == DEAD


@pytest.mark.req("F2", "F6")
def test_g_06_many_dead_letters_are_listed_filtered_and_cleared_by_age_in_steps(
    crowd: Crowd,
) -> None:
    r.pause(crowd.process, "all")
    ledger = crowd.process.base.ledger
    pile_up(ledger, [f"F-{n}" for n in range(MANY)])
    end_messages(crowd, MANY, ("answered 422: no", "answered 400: what", "gone"))
    began_s = time.monotonic()
    causes = crowd.ask("/dead-letters")["items"]
    assert time.monotonic() - began_s < 1
    assert [(c["name"], c["count"]) for c in causes] == [("erp", MANY // 3)] * 3

    seen: list[str] = []
    cursor: str | None = ""
    while cursor is not None:
        page = crowd.ask("/messages", state="dead", limit=200, cursor=cursor)
        seen += [each["id"] for each in page["items"]]
        cursor = page["next"]
    assert len(seen) == len(set(seen)) == MANY
    for narrowed, number in (
        ({"error": "gone"}, MANY // 3),
        ({"source": "contracts", "name": "erp"}, 1000),
        ({"source": "other"}, 0),
        ({"name": "crm"}, 0),
        ({"ended_before": "2020-01-01T00:00:00Z"}, 0),
    ):
        found = crowd.order("/dead-letters/discard", dry_run=True, filter=narrowed)
        assert found["matched"] == number, narrowed

    stopping = threading.Event()
    with ThreadPoolExecutor(1) as pool:
        intake = pool.submit(told_meanwhile, crowd, stopping)
        steps: list[Any] = []
        while not steps or steps[-1]["left"]:
            wanted = {"ended_before": "2100-01-01T00:00:00Z"}
            steps.append(crowd.order("/dead-letters/discard", filter=wanted))
        stopping.set()
        slowest_s, told = intake.result(60)
    assert sum(step["done"] for step in steps) == MANY
    assert len(steps) > 1
    assert told
    assert slowest_s < 5
    assert crowd.ask("/dead-letters")["items"] == []
    events = Counter(row.type for row in r.rows(crowd.process.base.store, t.events))
    assert events["MessageResolved"] == MANY


def told_meanwhile(crowd: Crowd, stopping: threading.Event) -> tuple[float, int]:
    """Have new versions accepted until the event is set; the slowest acceptance and how many."""
    slowest_s, number = 0.0, 0
    while not stopping.is_set():
        began_s = time.monotonic()
        r.announce(crowd.process, "http://x.invalid/", file_id=f"N-{number}")
        slowest_s, number = max(slowest_s, time.monotonic() - began_s), number + 1
    return slowest_s, number

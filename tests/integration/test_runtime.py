"""One process from an accepted fact to the receiver, over real HTTP in both directions."""

from __future__ import annotations

import hashlib
import threading
from pathlib import Path

import pytest
from standardwebhooks import Webhook

from app.ledger.requests import Control, Order
from app.store import queue
from app.store import tables as t
from domain.commands import CancelJob, Cause, ResolveMessage
from domain.installation import Paused, Resumed
from tests import runtimes as r
from tests.servers import Peer, Received, answering, closed_port, in_turn, serving

BOSS = Cause("operator", operator="ada", reason="test")
NO_STEPS = "transforms = []"
FAST = 'retry = { base = "10ms", cap = "20ms" }'

pytestmark = pytest.mark.usefixtures("either_database")


@pytest.mark.req("D1")
@pytest.mark.req("E1")
@pytest.mark.req("F1")
def test_a_file_goes_through_download_and_step_to_one_message(tmp_path: Path) -> None:
    with serving(answering(200, r.PDF)) as source, serving(answering(204)) as erp:
        config = r.configured(tmp_path, source=source.host, destination=erp.url("/hooks"))
        with r.running(config) as process:
            r.announce(process, source.url("/f"))
            file = r.until(lambda: r.settled(process))
            attempts = r.rows(process.base.store, t.attempts)
            assert r.leases_left(process) == 0
    (message,) = r.told(erp)
    assert message["type"] == "file.version.completed"
    original, text = message["data"]["artifacts"]
    assert original["sha256"] == hashlib.sha256(r.PDF).hexdigest()
    assert text["name"] == "text"
    assert file.versions["1"].phase == "completed"
    assert [a.outcome for a in attempts] == ["done", "done", "done"]
    Webhook(r.SECRET).verify(erp.requests[0].body, dict(erp.requests[0].headers))


@pytest.mark.req("E4")
def test_what_fails_for_a_time_is_tried_until_it_succeeds(tmp_path: Path) -> None:
    down = answering(500)
    sources = in_turn(down, answering(404), answering(200, r.PDF))
    with serving(sources) as source, serving(in_turn(down, down, answering(200))) as erp:
        config = r.configured(tmp_path, source=source.host, destination=erp.url("/"))
        with r.running(config) as process:
            r.announce(process, source.url("/f"))
            file = r.until(lambda: r.settled(process))
    (job, *_), (message,) = file.jobs.values(), file.messages.values()
    assert (job.phase, job.attempts) == ("done", 3)
    assert (message.phase, message.attempts) == ("delivered", 3)
    assert len({(q.header("webhook-id"), q.body) for q in erp.requests}) == 1


@pytest.mark.req("E4")
def test_what_can_never_succeed_is_dead_at_once(tmp_path: Path) -> None:
    with serving(answering(200, r.PDF)) as source, serving(answering(422, b"no")) as erp:
        config = r.configured(tmp_path, source=source.host, destination=erp.url("/"))
        with r.running(config) as process:
            r.announce(process, source.url("/f"))
            file = r.until(lambda: r.settled(process))
            attempts = r.rows(process.base.store, t.attempts)
    (message,) = file.messages.values()
    assert (message.phase, message.error) == ("dead", "answered 422: no")
    assert len(erp.requests) == 1
    assert b'"status":422' in attempts[-1].exchange


@pytest.mark.req("E4")
def test_a_receiver_that_is_gone_pauses_its_destination(tmp_path: Path) -> None:
    with serving(answering(200, r.PDF)) as source, serving(answering(410)) as erp:
        config = r.configured(
            tmp_path, source=source.host, destination=erp.url("/"), recipe=NO_STEPS
        )
        with r.running(config) as process:
            r.announce(process, source.url("/f"))
            r.until(lambda: r.settled(process))
            r.announce(process, source.url("/f"), file_id="F-2")
            r.until(lambda: r.file_of(process, "F-2").messages)
            (pause,) = r.rows(process.base.store, t.controls)
    assert (pause.what, pause.reason) == ("destination:erp", "answered 410")
    assert len(erp.requests) == 1


@pytest.mark.req("F2")
def test_a_paused_destination_waits_while_all_else_goes_on(tmp_path: Path) -> None:
    with serving(answering(200, r.PDF)) as source, serving(answering(204)) as erp:
        config = r.configured(
            tmp_path, source=source.host, destination=erp.url("/"), recipe=NO_STEPS
        )
        with r.running(config) as process:
            ledger = process.base.ledger
            ledger.submit(Control(Paused(at_ms=1, what="destination:erp"), BOSS)).result()
            r.announce(process, source.url("/f"))
            r.until(lambda: r.file_of(process).messages)
            assert erp.requests == []
            ledger.submit(Control(Resumed(at_ms=2, what="destination:erp"), BOSS)).result()
            r.until(lambda: r.settled(process))
    assert len(erp.requests) == 1


@pytest.mark.req("F2")
@pytest.mark.parametrize("what", ["all", "source:contracts", "recipe:invoices"])
def test_nothing_begins_while_its_part_is_paused(tmp_path: Path, what: str) -> None:
    with serving(answering(200, r.PDF)) as source, serving(answering(204)) as erp:
        config = r.configured(
            tmp_path, source=source.host, destination=erp.url("/"), recipe=NO_STEPS
        )
        with r.running(config) as process:
            ledger = process.base.ledger
            ledger.submit(Control(Paused(at_ms=1, what=what), BOSS)).result()
            r.announce(process, source.url("/f"))
            (job,) = r.file_of(process).jobs
            process.worker.run(job, "download")
            assert source.requests == []
            ledger.submit(Control(Resumed(at_ms=2, what=what), BOSS)).result()
            r.until(lambda: r.settled(process))


@pytest.mark.req("E5")
def test_a_message_without_an_answer_is_sent_again_with_the_same_id(tmp_path: Path) -> None:
    def drop(request: Received, peer: Peer) -> None:
        peer.close()

    with serving(answering(200, r.PDF)) as source, serving(in_turn(drop, answering(204))) as erp:
        config = r.configured(tmp_path, source=source.host, destination=erp.url("/"))
        with r.running(config) as process:
            r.announce(process, source.url("/f"))
            r.until(lambda: r.settled(process))
            outcomes = [a.outcome for a in r.rows(process.base.store, t.attempts)]
    assert outcomes[-2:] == ["unclear", "done"]
    assert len({q.header("webhook-id") for q in erp.requests}) == 1


@pytest.mark.req("E5")
def test_an_unclear_message_is_held_for_an_operator_where_so_configured(tmp_path: Path) -> None:
    def drop(request: Received, peer: Peer) -> None:
        peer.close()

    with serving(answering(200, r.PDF)) as source, serving(in_turn(drop, answering(204))) as erp:
        config = r.configured(
            tmp_path, source=source.host, destination=erp.url("/"), erp='unclear = "hold"'
        )
        with r.running(config) as process:
            accept = r.announce(process, source.url("/f"))
            held = r.until(lambda: r.messages_in(process, "held"))
            assert len(erp.requests) == 1
            order = ResolveMessage(
                stream=accept.stream, cause=BOSS, message=held[0].id, outcome="resend"
            )
            process.base.ledger.submit(Order(order)).result()
            r.until(lambda: r.settled(process))
    assert len(erp.requests) == 2


@pytest.mark.req("E5")
@pytest.mark.parametrize("known, sendings", [(200, 1), (404, 2)])
def test_the_receiver_is_asked_first_where_so_configured(
    tmp_path: Path, known: int, sendings: int
) -> None:
    posts: list[str] = []

    def answer(request: Received, peer: Peer) -> None:
        if request.method == "GET":
            peer.respond(known)
            return
        posts.append(request.header("webhook-id"))
        if len(posts) == 1:
            peer.close()
        else:
            peer.respond(204)

    with serving(answering(200, r.PDF)) as source, serving(answer) as erp:
        ask = f'unclear = "ask"\nask = "GET {erp.url("/known/{message_id}")}"\n{FAST}'
        config = r.configured(tmp_path, source=source.host, destination=erp.url("/"), erp=ask)
        with r.running(config) as process:
            r.announce(process, source.url("/f"))
            r.until(lambda: r.settled(process))
    assert len(posts) == sendings
    assert len(set(posts)) == 1


@pytest.mark.req("E4")
def test_a_wait_that_a_receiver_asks_for_holds_for_all_its_messages(tmp_path: Path) -> None:
    busy = answering(429, retry_after="600")
    with serving(answering(200, r.PDF)) as source, serving(busy) as erp:
        config = r.configured(
            tmp_path, source=source.host, destination=erp.url("/"), recipe=NO_STEPS
        )
        with r.running(config) as process:
            r.announce(process, source.url("/f"))
            r.until(lambda: r.messages_in(process, "waiting"))
            r.announce(process, source.url("/f"), file_id="F-2")
            (message,) = r.until(lambda: r.file_of(process, "F-2").messages)
            process.worker.run(message, "message")
            with process.base.store.read() as connection:
                assert "destination:erp" in queue.picture(connection, 0).waits
    assert len(erp.requests) == 1


@pytest.mark.req("E6")
def test_a_dead_receiver_opens_the_breaker_and_costs_no_attempts(tmp_path: Path) -> None:
    port = closed_port()
    breaker = f'breaker = {{ consecutive = 3, open = "60s" }}\n{FAST}'
    with serving(answering(200, r.PDF)) as source:
        config = r.configured(
            tmp_path,
            source=source.host,
            destination=f"http://127.0.0.1:{port}/",
            recipe=NO_STEPS,
            erp=breaker,
        )
        with r.running(config) as process:
            for number in range(6):
                r.announce(process, source.url("/f"), file_id=f"F-{number}")
            store = process.base.store
            r.until(lambda: '"open"' in r.circuit(store, "destination:erp"))
            r.until(lambda: len(r.rows(store, t.messages)) == 6 and not r.leases_left(process))
            spent = sum(m.attempts for m in r.rows(store, t.messages))
            for message in r.rows(store, t.messages):
                process.worker.run(message.id, "message")
            assert sum(m.attempts for m in r.rows(store, t.messages)) == spent
            assert {m.state for m in r.rows(store, t.messages)} <= {"pending", "waiting"}
            assert 3 <= spent <= 3 + 8


@pytest.mark.req("E6")
def test_after_its_time_one_probe_goes_and_then_all(tmp_path: Path) -> None:
    down, lock = threading.Event(), threading.Lock()
    down.set()
    flying = {"now": 0, "most_before_success": 0, "good": 0}

    def answer(request: Received, peer: Peer) -> None:
        with lock:
            flying["now"] += 1
            if not flying["good"] and not down.is_set():
                flying["most_before_success"] = max(flying["most_before_success"], flying["now"])
        peer.respond(500 if down.is_set() else 204)
        with lock:
            flying["now"] -= 1
            flying["good"] += not down.is_set()

    breaker = f'breaker = {{ consecutive = 2, open = "300ms" }}\n{FAST}'
    with serving(answering(200, r.PDF)) as source, serving(answer) as erp:
        config = r.configured(
            tmp_path, source=source.host, destination=erp.url("/"), recipe=NO_STEPS, erp=breaker
        )
        with r.running(config) as process:
            for number in range(12):
                r.announce(process, source.url("/f"), file_id=f"F-{number}")
            store = process.base.store
            r.until(lambda: '"open"' in r.circuit(store, "destination:erp"))
            r.until(lambda: not r.leases_left(process))
            down.clear()
            r.until(lambda: {m.state for m in r.rows(store, t.messages)} == {"delivered"})
    assert flying["most_before_success"] == 1
    assert len({q.header("webhook-id") for q in erp.requests}) == 12


@pytest.mark.req("E7")
def test_under_order_by_file_a_failing_message_blocks_its_own_file_only(tmp_path: Path) -> None:
    down = threading.Event()
    down.set()

    def answer(request: Received, peer: Peer) -> None:
        peer.respond(500 if down.is_set() and b'"file_id":"F-1"' in request.body else 204)

    lines = f'order = "file"\nbreaker = {{ consecutive = 1000, rate = 1.0 }}\n{FAST}'
    recipe = f'{NO_STEPS}\nversions = "all"'
    with serving(answering(200, r.PDF)) as source, serving(answer) as erp:
        config = r.configured(
            tmp_path, source=source.host, destination=erp.url("/"), recipe=recipe, erp=lines
        )
        with r.running(config) as process:
            for number in (1, 2, 3):
                r.announce(process, source.url("/f"), number=number)
                r.until(lambda: len(r.file_of(process).messages) == number)  # noqa: B023
            r.announce(process, source.url("/f"), file_id="F-2")
            r.until(lambda: r.settled(process, "F-2"))
            assert {m["data"]["version"] for m in r.told(erp) if m["data"]["file_id"] == "F-1"} == {
                "1"
            }
            down.clear()
            r.until(lambda: r.settled(process))
    mine = [m["data"] for m in r.told(erp) if m["data"]["file_id"] == "F-1"]
    assert list(dict.fromkeys(m["version"] for m in mine)) == ["1", "2", "3"]
    assert [m["sequence"] for m in mine] == sorted(m["sequence"] for m in mine)


@pytest.mark.req("E10")
def test_a_slow_destination_does_not_delay_another(tmp_path: Path) -> None:
    def hang(request: Received, peer: Peer) -> None:
        peer.hang()

    with (
        serving(answering(200, r.PDF)) as source,
        serving(hang) as slow,
        serving(answering(204)) as fast,
    ):
        more = (
            f'[destinations.crm]\nurl = "{fast.url("/")}"\nsecrets = ["env:SECRET"]\nprivate = true'
        )
        config = r.configured(
            tmp_path,
            source=source.host,
            destination=slow.url("/"),
            notify='["erp", "crm"]',
            recipe=NO_STEPS,
            erp='timeout = "60s"\nconcurrency = 8',
            more=more,
        )
        with r.running(config, grace_s=0) as process:
            for number in range(12):
                r.announce(process, source.url("/f"), file_id=f"F-{number}")
            r.until(lambda: len(fast.requests) == 12)
            assert len(slow.requests) <= 8


@pytest.mark.req("E10")
def test_a_rate_bounds_what_leaves_in_a_second(tmp_path: Path) -> None:
    with serving(answering(200, r.PDF)) as source, serving(answering(204)) as erp:
        config = r.configured(
            tmp_path,
            source=source.host,
            destination=erp.url("/"),
            recipe=NO_STEPS,
            erp='rate = "4/s"',
        )
        with r.running(config) as process:
            began_s = process.base.clock.monotonic()
            for number in range(10):
                r.announce(process, source.url("/f"), file_id=f"F-{number}")
            r.until(lambda: len(erp.requests) == 10)
            # Four at once, and six more at four a second.
            assert process.base.clock.monotonic() - began_s >= 1.4


@pytest.mark.req("C6")
def test_a_cancelled_download_stops_within_seconds(tmp_path: Path) -> None:
    def trickle(request: Received, peer: Peer) -> None:
        peer.send(b"HTTP/1.1 200 X\r\ncontent-length: 100000000\r\n\r\n")
        peer.trickle(every_s=0.01, piece=b"x" * 4096)

    with serving(trickle) as source:
        config = r.configured(
            tmp_path, source=source.host, destination="http://127.0.0.1:1/", erp="", download=""
        )
        with r.running(config) as process:
            accept = r.announce(process, source.url("/f"))
            (job,) = r.until(lambda: r.file_of(process).jobs)
            r.until(lambda: r.leases_left(process) == 1)
            progress = r.until(lambda: r.rows(process.base.store, t.leases)[0].done)
            assert progress > 0
            order = CancelJob(stream=accept.stream, cause=BOSS, job=job)
            process.base.ledger.submit(Order(order)).result()
            r.until(lambda: r.leases_left(process) == 0)
            assert r.file_of(process).jobs[job].phase == "cancelled"

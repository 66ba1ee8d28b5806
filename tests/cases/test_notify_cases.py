"""Cases E: sending to real receivers that misbehave, as far as the effect alone shows them."""

from __future__ import annotations

import base64
import json
import socket
import threading
import time
import tracemalloc
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from pathlib import Path
from typing import Any

import pytest
import svix
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from standardwebhooks import Webhook

from domain.outcomes import Again, Dead, Done, Unclear
from jobs.notify import Attempt, Delivered, NotifyJob, NotifyOutcome, ask, notify, signer
from jobs.outbound import Fixed
from jobs.tools import Target, Tools
from tests.effects import MIB, notify_job, tools_in
from tests.servers import Handler, Peer, Received, Server, answering, closed_port, in_turn, serving

NAMES = Path(__file__).parent / "files" / "names.jsonl"
OLD = "whsec_" + base64.b64encode(b"o" * 32).decode()
NEW = "whsec_" + base64.b64encode(b"n" * 32).decode()


@pytest.fixture
def tools(tmp_path: Path) -> Iterator[Tools]:
    with tools_in(tmp_path) as made:
        yield made


def sent(tools: Tools, handler: Handler, **fields: Any) -> tuple[Attempt, NotifyOutcome, Server]:
    with serving(handler) as server:
        attempt, outcome = notify(notify_job(server.url("/hooks?token=q-secret"), **fields), tools)
    assert "q-secret" not in repr((attempt, outcome))
    return attempt, outcome, server


def outcome_of(tools: Tools, handler: Handler, **fields: Any) -> NotifyOutcome:
    return sent(tools, handler, **fields)[1]


@pytest.mark.req("E3")
def test_e_01_every_attempt_sends_the_same_id_and_bytes(tools: Tools) -> None:
    body = '{"type":"file.version.completed","data":{"name":"Ärger"}}'.encode()
    with serving(answering(204)) as server:
        job = notify_job(server.url("/hooks"), body=body, sign=signer((NEW,)))
        notify(job, tools)
        notify(replace(job, attempt=2), tools)
    first, second = server.requests
    assert first.body == second.body == body
    for request in server.requests:
        assert request.method == "POST"
        assert request.header("webhook-id") == request.header("idempotency-key") == "msg_1"
        assert request.header("content-type") == "application/json"
        assert request.header("user-agent") == "Laufzettel/1.0"


@pytest.mark.req("E3")
def test_foreign_verifiers_accept_both_signatures_of_a_change(tools: Tools) -> None:
    body = b'{"type":"x","n":9007199254740993}'
    _, _, server = sent(tools, answering(200), body=body, sign=signer((NEW, OLD)))
    headers = {name.lower(): value for name, value in server.requests[0].headers}
    assert len(headers["webhook-signature"].split()) == 2
    for secret in (NEW, OLD):
        Webhook(secret).verify(body, headers)
        svix.Webhook(secret).verify(body, headers)


@pytest.mark.req("E3")
def test_an_ed25519_secret_signs_v1a(tools: Tools) -> None:
    key = Ed25519PrivateKey.generate()
    secret = "whsk_" + base64.b64encode(key.private_bytes_raw()).decode()
    _, _, server = sent(tools, answering(200), body=b"{}", sign=signer((secret,)))
    request = server.requests[0]
    label, _, signature = request.header("webhook-signature").partition(",")
    signed = f"msg_1.{request.header('webhook-timestamp')}.{{}}".encode()
    assert label == "v1a"
    key.public_key().verify(base64.b64decode(signature), signed)


@pytest.mark.req("E13")
def test_destinations_get_their_headers_and_never_lose_ours(tools: Tools) -> None:
    _, _, server = sent(
        tools,
        answering(200),
        method="PUT",
        headers=(("X-Company", "acme"), ("Webhook-Id", "forged"), ("Content-Length", "1")),
        credentials=Fixed((("authorization", "Bearer tok"),)),
    )
    request = server.requests[0]
    names = [name.lower() for name, _ in request.headers]
    assert request.method == "PUT"
    assert (request.header("x-company"), request.header("authorization")) == ("acme", "Bearer tok")
    assert request.header("webhook-id") == "msg_1"
    assert len(names) == len(set(names))


@pytest.mark.req("E8")
def test_e_03_a_success_keeps_the_answer_for_people(tools: Tools) -> None:
    answer = b'{"ok":false,"error":"no such record"}'
    attempt, outcome, server = sent(tools, answering(200, answer, x_a="1", set_cookie="s=secret"))
    assert outcome == Done(Delivered())
    assert attempt.url == server.url("/hooks")
    assert (attempt.status, attempt.response_body, attempt.error) == (200, answer.decode(), "")
    assert ("x-a", "1") in attempt.response_headers
    assert ("set-cookie", "***") in attempt.response_headers
    assert attempt.duration_ms >= 0


@pytest.mark.parametrize("answer", [b'{"ok":false,"error":"no"}', b"<html>", b"[" * 9000, b""])
def test_e_03_a_declared_check_makes_the_answer_a_failure(tools: Tools, answer: bytes) -> None:
    check = {"delivered_pointer": "/ok", "delivered_equals": True}
    outcome = outcome_of(tools, answering(200, answer), **check)
    assert isinstance(outcome, Again)
    assert outcome.reason == f"answered 200: {answer.decode()[:200]}".removesuffix(": ")
    assert isinstance(outcome_of(tools, answering(200, b'{"ok":true}'), **check), Done)
    assert isinstance(outcome_of(tools, answering(200, b'{"ok":1}'), **check), Again)


def test_a_status_outside_the_declared_ones_is_no_success(tools: Tools) -> None:
    assert isinstance(outcome_of(tools, answering(202), delivered_status=("200", "204")), Again)
    assert isinstance(outcome_of(tools, answering(204), delivered_status=("200", "204")), Done)


@pytest.mark.req("E11")
@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_e_04_redirects_are_not_followed(tools: Tools, status: int) -> None:
    with serving(answering(200)) as other:
        place = other.url("/new?token=other-secret")
        _, outcome, server = sent(tools, answering(status, location=place))
        assert other.connections == 0
    there = f"{other.host}/new"
    assert outcome == Again(f"receiver redirects to {there}", trouble=True)
    assert [request.method for request in server.requests] == ["POST"]


@pytest.mark.req("E4")
def test_e_05_gone_ends_the_message_and_pauses_the_destination(tools: Tools) -> None:
    assert outcome_of(tools, answering(410)) == Dead("answered 410", pauses=True)


@pytest.mark.req("E4")
@pytest.mark.parametrize("status", [429, 503])
def test_e_06_a_stated_wait_holds_for_the_whole_destination(tools: Tools, status: int) -> None:
    outcome = outcome_of(tools, answering(status, retry_after="120"))
    assert isinstance(outcome, Again)
    assert (outcome.wait_s, outcome.everyone) == (120, True)
    date = format_datetime(datetime.now(UTC) + timedelta(seconds=90), usegmt=True)
    outcome = outcome_of(tools, answering(status, retry_after=date))
    assert isinstance(outcome, Again)
    assert 60 <= (outcome.wait_s or 0) <= 90
    outcome = outcome_of(tools, answering(status))
    assert isinstance(outcome, Again)
    assert (outcome.wait_s, outcome.everyone) == (None, False)


@pytest.mark.req("E4")
@pytest.mark.parametrize("status", [400, 413, 422])
def test_e_07_refused_content_is_dead_at_once(tools: Tools, status: int) -> None:
    outcome = outcome_of(tools, answering(status, b"field\n version  missing"))
    assert outcome == Dead(f"answered {status}: field version missing")


@pytest.mark.req("E4")
def test_e_07_the_list_of_permanent_codes_is_the_destinations(tools: Tools) -> None:
    assert outcome_of(tools, answering(409), permanent=(409,)) == Dead("answered 409")
    assert isinstance(outcome_of(tools, answering(422), permanent=(409,)), Again)
    assert outcome_of(tools, answering(410), permanent=()) == Dead("answered 410", pauses=True)


@pytest.mark.req("E4")
@pytest.mark.parametrize(
    "status, trouble",
    [
        *((401, True), (403, True), (404, True), (408, True), (425, True), (429, False)),
        *((500, True), (502, True), (599, True), (405, False), (409, False)),
    ],
)
def test_e_07_all_else_is_retried(tools: Tools, status: int, trouble: bool) -> None:
    assert outcome_of(tools, answering(status)) == Again(f"answered {status}", trouble=trouble)


@pytest.mark.req("E11")
def test_e_08_a_trickling_receiver_is_cut_off_at_the_limit(tools: Tools) -> None:
    def trickling(request: Received, peer: Peer) -> None:
        peer.send(b"HTTP/1.1 200 X\r\ncontent-length: 100000\r\n\r\n")
        peer.trickle(every_s=0.05)

    began = time.monotonic()
    attempt, outcome, _ = sent(tools, trickling, timeout_s=1.0)
    assert 0.9 < time.monotonic() - began < 10
    assert outcome == Unclear("answer not complete within 1 s")
    assert (attempt.status, attempt.error) == (200, "answer not complete within 1 s")
    assert 900 <= attempt.duration_ms < 10_000


def test_e_08_a_refusal_is_a_refusal_also_if_its_body_trickles(tools: Tools) -> None:
    def trickling(request: Received, peer: Peer) -> None:
        peer.send(b"HTTP/1.1 500 X\r\ncontent-length: 100000\r\n\r\n")
        peer.trickle(every_s=0.05)

    outcome = outcome_of(tools, trickling, timeout_s=0.5)
    assert isinstance(outcome, Again)
    assert outcome.trouble


@pytest.mark.req("E11")
def test_e_09_an_endless_answer_is_read_only_in_part(tools: Tools) -> None:
    taken: list[int] = []

    def endless(request: Received, peer: Peer) -> None:
        peer.send(b"HTTP/1.1 200 X\r\ncontent-length: 2147483648\r\n\r\n")
        taken.append(peer.flood(size_bytes=1 << 31))

    tracemalloc.start()
    attempt, outcome, _ = sent(tools, endless)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert outcome == Done(Delivered())
    assert len(attempt.response_body) == 4096
    assert peak < 4 * MIB


def test_e_09_a_large_message_goes_out_whole(tools: Tools) -> None:
    body = b"x" * (3 * MIB)
    _, outcome, server = sent(tools, answering(200), body=body)
    assert outcome == Done(Delivered())
    assert server.requests[0].body == body


@pytest.mark.req("E5")
def test_sent_without_an_answer_is_unclear(tools: Tools) -> None:
    def silent(request: Received, peer: Peer) -> None:
        peer.hang()

    def cut(request: Received, peer: Peer) -> None:
        peer.reset()

    assert outcome_of(tools, silent, timeout_s=0.4) == Unclear("sent, no answer within 0.4 s")
    assert outcome_of(tools, cut) == Unclear("sent, no answer: connection closed")


@pytest.mark.req("E5")
def test_what_could_not_leave_is_not_unclear(tools: Tools) -> None:
    attempt, outcome = notify(notify_job(f"http://127.0.0.1:{closed_port()}/"), tools)
    assert isinstance(outcome, Again)
    assert outcome.trouble
    assert (attempt.status, attempt.error) == (None, outcome.reason)

    with socket.create_server(("127.0.0.1", 0)) as sock:  # takes connections, reads nothing
        job = notify_job(f"http://127.0.0.1:{sock.getsockname()[1]}/", timeout_s=0.4)
        short = notify(job, tools)[1]
        long = notify(replace(job, body=b"x" * (64 * MIB)), tools)[1]
    assert short == Unclear("sent, no answer within 0.4 s")
    assert long == Again("not sent within 0.4 s", trouble=True)


@pytest.mark.req("E12")
def test_the_receivers_own_id_is_kept(tools: Tools) -> None:
    answer = answering(201, b'{"data":{"id":4711}}', x_id="ERP-1")
    assert outcome_of(tools, answer, reference="/data/id") == Done(Delivered("4711"))
    assert outcome_of(tools, answer, reference="header:X-Id") == Done(Delivered("ERP-1"))
    assert outcome_of(tools, answer, reference="/nothing") == Done(Delivered())
    assert outcome_of(tools, answering(200, b"OK"), reference="/id") == Done(Delivered())


@pytest.mark.req("F7")
def test_g_03_what_a_receiver_echoes_of_our_secrets_is_not_kept(tools: Tools) -> None:
    def echo(request: Received, peer: Peer) -> None:
        lines = "\n".join(f"{name}: {value}" for name, value in request.headers)
        peer.respond(400, lines.encode(), x_echo=request.header("authorization"))

    attempt, outcome, server = sent(
        tools,
        echo,
        sign=signer((NEW,)),
        credentials=Fixed((("authorization", "Bearer tok-secret-value"),)),
    )
    signature = server.requests[0].header("webhook-signature")
    shown = repr((attempt, outcome))
    assert "tok-secret-value" not in shown
    assert signature not in shown
    assert signature.partition(",")[2] not in shown
    assert isinstance(outcome, Dead)


def test_answers_are_kept_as_text_that_any_database_takes(tools: Tools) -> None:
    attempt, _, _ = sent(tools, answering(200, b"a\x00b\xff\x1b[31m" + "ä".encode() * 4096))
    assert "\x00" not in attempt.response_body
    assert "\x1b" not in attempt.response_body
    assert len(attempt.response_body.encode()) <= 4096


def test_a_renewable_token_is_renewed_once(tools: Tools) -> None:
    class Renewing:
        token = "stale"

        def headers(self) -> tuple[tuple[str, str], ...]:
            return (("authorization", self.token),)

        def renewed(self, stale: tuple[tuple[str, str], ...]) -> tuple[tuple[str, str], ...]:
            self.token = "fresh"
            return self.headers()

    def handler(request: Received, peer: Peer) -> None:
        peer.respond(200 if request.header("authorization") == "fresh" else 401)

    assert outcome_of(tools, handler, credentials=Renewing()) == Done(Delivered())
    _, outcome, server = sent(tools, answering(401), credentials=Renewing())
    assert outcome == Again("answered 401", trouble=True)
    assert len(server.requests) == 2


@pytest.mark.req("E11")
@pytest.mark.parametrize("url", ["http://127.0.0.1/", "http://169.254.169.254/", "ftp://x/"])
def test_e_12_addresses_are_checked_at_each_sending(tools: Tools, url: str) -> None:
    outcome = notify(notify_job(url, target=Target()), tools)[1]
    assert isinstance(outcome, Again)
    assert outcome.reason.startswith("address not allowed")
    assert outcome.trouble


@pytest.mark.parametrize("line", NAMES.read_text().splitlines(), ids=lambda line: None)
def test_e_16_hostile_names_stay_in_the_body(tools: Tools, line: str) -> None:
    name = json.loads(line)["name"]
    body = json.dumps({"name": name}).encode()
    _, outcome, server = sent(tools, answering(200), body=body, sign=signer((NEW,)))
    assert outcome == Done(Delivered())
    request = server.requests[0]
    assert {name.lower() for name, _ in request.headers} == {
        *("host", "user-agent", "accept", "accept-encoding", "content-length", "content-type"),
        *("webhook-id", "webhook-timestamp", "webhook-signature", "idempotency-key"),
    }
    assert json.loads(request.body) == {"name": name}


def test_a_password_may_hold_any_letter(tools: Tools) -> None:
    _, outcome, server = sent(tools, answering(200), headers=(("x-a", "1€"), ("x-b", "ß")))
    assert outcome == Done(Delivered())
    assert server.requests[0].header("x-a").encode("latin-1").decode() == "1€"
    assert server.requests[0].header("x-b") == "ß"


def test_a_header_that_would_inject_another_is_never_sent(tools: Tools) -> None:
    _, outcome, server = sent(tools, answering(200), headers=(("x-a", "1\r\nx-injected: 1"),))
    assert isinstance(outcome, Again)
    assert server.requests == []


@pytest.mark.req("E5")
def test_asking_a_receiver_tells_the_three_answers_apart(tools: Tools) -> None:
    def asked(handler: Handler) -> tuple[object, Server]:
        with serving(handler) as server:
            url = server.url("/hooks")
            job = notify_job(
                url,
                ask_url=server.url("/messages/{message_id}"),
                credentials=Fixed((("authorization", "tok"),)),
                reference="/id",
            )
            return ask(job, tools), server

    outcome, server = asked(answering(200, b'{"id":"7"}'))
    assert outcome == Done(Delivered("7"))
    assert (server.requests[0].method, server.requests[0].target) == ("GET", "/messages/msg_1")
    assert server.requests[0].header("authorization") == "tok"
    assert asked(answering(404))[0] == Again("the receiver does not have it", counted=False)
    assert isinstance(asked(answering(500))[0], Unclear)
    assert isinstance(asked(lambda request, peer: peer.reset())[0], Unclear)


def test_connections_are_used_again_and_a_closed_one_costs_no_message(tools: Tools) -> None:
    closed = threading.Event()

    def closing(request: Received, peer: Peer) -> None:
        peer.respond(200)
        peer.close()
        closed.set()

    with serving(in_turn(answering(200), answering(200), closing, answering(200))) as server:
        job: NotifyJob = notify_job(server.url())
        outcomes = [notify(job, tools)[1] for _ in range(3)]
        assert closed.wait(10)
        outcomes += [notify(job, tools)[1] for _ in range(2)]
    assert outcomes == [Done(Delivered())] * 5
    assert server.connections == 2

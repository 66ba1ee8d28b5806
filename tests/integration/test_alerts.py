"""Alerts of our own: opened once, told until taken, closed when over, told once more."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from standardwebhooks import Webhook

from app.clock import SettableClock, SystemDice
from app.compose.alerting import Alerting, Parts
from app.config import Config, load
from app.store import breakers
from app.web.access import Access
from app.web.api.office import Office
from domain.breaker import Breaker, BreakerPolicy, after, dump
from jobs.outbound import Outbound
from tests.installations import ENVIRON, SOURCE, Installation, installed, rest_of
from tests.servers import Server, answering, in_turn, serving

SECRET = ENVIRON["ERP_SECRET"]


@contextmanager
def told_to(running: Installation, folder: Path, chat: Server) -> Iterator[Alerting]:
    """What tells this installation's troubles to a destination of its own."""
    lines = f'[destinations.chat]\nurl = "{chat.url("/")}"\nsecrets = ["env:ERP_SECRET"]\n'
    text = f'{SOURCE}{rest_of(SOURCE, "")}\n{lines}private = true\n[alerts]\nnotify = ["chat"]\n'
    path = folder / "alerted.toml"
    path.write_text(text)
    config = load(path, ENVIRON)
    assert isinstance(config, Config), config
    http = Outbound(clock=running.clock, user_agent="Laufzettel")
    access = Access(running.ledger, running.clock, SystemDice())
    place = running.store, running.ledger, running.blobs, running.clock
    office = Office(config, *place, access, None, threading.Event())
    try:
        yield Alerting(Parts(config, running.ledger, office, http, running.blobs, running.clock))
    finally:
        http.close()


def cut_off(running: Installation) -> None:
    broken = after(Breaker(BreakerPolicy(consecutive=1)), success=False, now=running.clock.now())
    running.ledger.operate(lambda c, ms: breakers.save(c, "destination:erp", dump(broken), ms))


def mend(running: Installation) -> None:
    running.ledger.operate(lambda c, ms: breakers.save(c, "destination:erp", "", ms))


@pytest.mark.req("F8")
def test_a_trouble_is_told_once_until_it_is_taken_and_once_more_when_it_is_over(
    tmp_path: Path,
) -> None:
    handler = in_turn(answering(503), answering(204))
    with serving(handler) as chat, installed(tmp_path) as running:
        clock = running.clock
        assert isinstance(clock, SettableClock)
        with told_to(running, tmp_path, chat) as alerting:
            alerting.round()
            assert chat.requests == []
            cut_off(running)
            for _ in range(5):
                alerting.round()
                clock.advance(61)
            assert len(chat.requests) == 2, "refused once, taken once, and never told again"
            mend(running)
            alerting.round()
            assert len(chat.requests) == 2, "what comes and goes is one trouble"
            clock.advance(121)
            alerting.round()
            alerting.round()
        listed = running.api("GET", "/alerts", running.token("viewer")).json()["items"]
    first, second, last = chat.requests
    assert first.body == second.body
    assert first.header("webhook-id") == second.header("webhook-id") != last.header("webhook-id")
    opened, closed = json.loads(second.body), json.loads(last.body)
    assert (opened["type"], closed["type"]) == ("alert.opened", "alert.closed")
    assert opened["data"]["alert"] == closed["data"]["alert"]
    assert (opened["data"]["what"], opened["data"]["name"]) == ("breaker", "erp")
    assert opened["data"]["link"].endswith("/console")
    assert [(a["what"], a["told"]) for a in listed] == [("breaker", {"chat": "closed"})]


@pytest.mark.req("F8")
@pytest.mark.req("E3")
def test_an_alert_is_signed_as_all_messages_are(tmp_path: Path) -> None:
    with (
        serving(answering(204)) as chat,
        installed(tmp_path) as running,
        told_to(running, tmp_path, chat) as alerting,
    ):
        cut_off(running)
        alerting.round()
        at = running.clock.now()
    (request,) = chat.requests
    message_id = str(request.header("webhook-id"))
    signed = Webhook(SECRET).sign(message_id, at, request.body.decode())
    assert request.header("webhook-signature") == signed
    assert message_id.startswith("msg_")

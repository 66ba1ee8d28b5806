"""A-07: a source's secret is changed while deliveries come, and the operator sees when it is over."""

from __future__ import annotations

import json
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from app.clock import SettableClock
from app.store import tables as t
from domain import profiles, signatures
from domain.profiles import SourceSettings
from domain.schemes import Request
from tests.commands import document
from tests.installations import ENVIRON, NOW, Installation, count, found, installed

NEW, OLD = ENVIRON["S_SECRET"], ENVIRON["S_OLD_SECRET"]
BOX = """
[sources.box]
profile = "box"
secrets = ["env:S_OLD_SECRET", "env:S_SECRET"]
[sources.box.download]
hosts = ["127.0.0.1:9001"]
"""
LATER = BOX.replace('"env:S_OLD_SECRET", ', "")


def body_of(number: int) -> bytes:
    file: dict[str, Any] = {"id": "17", "type": "file", "name": "a.pdf", "sequence_id": str(number)}
    file |= {"file_version": {"id": str(number)}}
    top: dict[str, Any] = {
        "type": "webhook_event",
        "id": f"evt-{number}",
        "trigger": "FILE.UPLOADED",
    }
    return json.dumps(top | {"created_at": "2026-11-30T10:15:00Z", "source": file}).encode()


def send(running: Installation, number: int, *secrets: str) -> int:
    """Post a delivery with one signature header a secret, in this order."""
    return post(running, body_of(number), *secrets)


def post(running: Installation, body: bytes, *secrets: str) -> int:
    headers = {"box-signature-version": "1", "box-signature-algorithm": "HmacSHA256"}
    names = ("box-signature-primary", "box-signature-secondary")
    for name, secret in zip(names, secrets, strict=False):
        headers |= {n: v for n, v in signed(running, body, secret) if "signature-" not in n}
        made = dict(signed(running, body, secret))
        headers[name] = made["box-signature-primary"]
    return running.http.post("/hooks/box", content=body, headers=headers).status_code


def signed(running: Installation, body: bytes, secret: str) -> tuple[tuple[str, str], ...]:
    ready = profiles.prepare(SourceSettings(profile="box", secrets=(secret,)))
    assert isinstance(ready, profiles.Source)
    unsigned = Request("POST", "", "/hooks/box", "", (), body)
    made = signatures.sign(ready.schemes[0], unsigned, ready.keys, running.clock.now())
    assert isinstance(made, signatures.Signed), made
    return made.headers


def listed(running: Installation, **query: Any) -> dict[str, Any]:
    answer = running.api("GET", "/secrets", running.token("viewer"), params=query)
    assert answer.status_code == 200, answer.text
    assert not any(secret in answer.text for secret in ENVIRON.values())
    return {row["reference"] or row["key_id"]: row for row in answer.json()["items"]}


@pytest.mark.req("A15")
def test_a_07_old_new_and_both_headers_are_good_during_a_change(tmp_path: Path) -> None:
    clock = SettableClock(NOW)
    with installed(tmp_path, BOX, clock=clock) as running:
        sent = [(OLD,), (NEW,), (OLD, NEW)]
        assert [send(running, n, *secrets) for n, secrets in enumerate(sent, 1)] == [202] * 3
        old, new = (key.id for key in running.config.sources[0].ready.keys)
        assert [r.key_id for r in found(running, t.receipts)] == [old, new, old]
        rows = listed(running)
        assert [rows["env:S_SECRET"]["retire"], rows["env:S_OLD_SECRET"]["retire"]] == [
            "in-use"
        ] * 2
        clock.advance(timedelta(days=8).total_seconds())
        assert send(running, 5, NEW) == 202
        rows = listed(running)
        assert rows["env:S_OLD_SECRET"]["retire"] == "safe"
        assert rows["env:S_OLD_SECRET"]["last_used_at"] == "2026-11-30T10:15:30Z"
        assert rows["env:S_SECRET"]["last_used_at"] == "2026-12-08T10:15:30Z"
        assert listed(running, quiet_days=30)["env:S_OLD_SECRET"]["retire"] == "in-use"
        assert rows["env:ERP_SECRET"]["retire"] == "receiver"


@pytest.mark.req("A15")
def test_a_07_a_secret_that_was_given_up_proves_nothing_and_stays_on_record(
    tmp_path: Path,
) -> None:
    with installed(tmp_path, LATER) as running:
        assert send(running, 1, OLD) == 401
        assert send(running, 2, OLD, NEW) == 202
        assert send(running, 3, NEW, OLD) == 202
        assert count(running, t.receipts) == 2
        (row,) = [row for row in listed(running).values() if row["part"] == "source:box"]
        assert row["retire"] == "only"


@pytest.mark.req("A15")
def test_a_repeat_and_a_refused_content_also_say_which_secret_is_used(tmp_path: Path) -> None:
    clock = SettableClock(NOW)
    with installed(tmp_path, BOX, clock=clock) as running:
        assert [send(running, 1, OLD), send(running, 2, NEW)] == [202, 202]
        clock.advance(timedelta(days=8).total_seconds())
        assert [send(running, 1, OLD), send(running, 3, NEW)] == [200, 202]
        assert listed(running)["env:S_OLD_SECRET"]["last_used_at"] == "2026-12-08T10:15:30Z"
        clock.advance(timedelta(days=8).total_seconds())
        assert post(running, body_of(4).replace(b'"name": "a.pdf"', b'"name": 7'), OLD) == 422
        assert listed(running)["env:S_OLD_SECRET"]["last_used_at"] == "2026-12-16T10:15:30Z"


@pytest.mark.req("F7")
def test_whoever_is_limited_to_sources_sees_the_secrets_of_these_only(tmp_path: Path) -> None:
    with installed(tmp_path, BOX) as running:
        for scope, parts in (("source:box", {"source:box"}), ("source:other", set())):
            answer = running.api("GET", "/secrets", running.token("viewer", scope))
            assert {row["part"] for row in answer.json()["items"]} == parts


@pytest.mark.req("F5")
def test_the_command_lists_what_the_api_knows(tmp_path: Path) -> None:
    with installed(tmp_path, BOX) as running:
        assert send(running, 1, NEW) == 202
        token = running.token("viewer")
        told = ("--url", running.server.url, "secrets", "source:box")
        rows = document(*told, folder=tmp_path, LAUFZETTEL_TOKEN=token)["items"]
    assert [row["reference"] for row in rows] == ["env:S_OLD_SECRET", "env:S_SECRET"]
    assert [row["retire"] for row in rows] == ["unused", "in-use"]

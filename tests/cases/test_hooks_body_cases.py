"""Cases of what bodies hold, over real HTTP: each test is named after its case."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from app.store import tables as t
from tests.deliveries import body_of, length, post, refused, signed
from tests.installations import (
    SOURCE,
    Installation,
    count,
    event,
    exchange,
    found,
    installed,
    recorded,
    status_of,
)

DELIVERIES = Path(__file__).parent / "files/deliveries"
TABLE: dict[str, Any] = json.loads((DELIVERIES / "vectors.json").read_text())
ROOT = Path(__file__).parents[2]


@pytest.fixture
def running(tmp_path: Path) -> Iterator[Installation]:
    with installed(tmp_path) as installation:
        yield installation


@pytest.mark.req("A5")
@pytest.mark.parametrize(
    "name, reason",
    [
        ("bom.json", "byte order mark"),
        ("duplicate-keys.json", "duplicate key"),
        ("nan.json", "NaN is no JSON"),
        ("infinity.json", "number out of range"),
        ("array-instead-of-object.json", "not an object"),
        ("empty.bin", "empty body"),
        ("lone-surrogate-name.json", "lone surrogate"),
        ("invalid-utf8.bin", "not UTF-8"),
        ("deep-20000.json", "nested deeper than 100 levels"),
        ("deep-200-in-extra.json", "nested deeper than 100 levels"),
    ],
)
def test_a_11_a_12_a_14_a_15_a_16_json_that_is_not_strict_is_400_and_listed(
    running: Installation, name: str, reason: str
) -> None:
    answer = running.send(body_of(name))
    assert (answer.status_code, answer.json()["type"]) == (400, "invalid-json")
    assert answer.headers["content-type"] == "application/problem+json"
    assert recorded(running) == 0
    assert count(running, t.receipts) == count(running, t.payloads) == 0
    refused(running, 1)
    assert found(running, t.deliveries)[0].reason == reason


@pytest.mark.req("A5")
@pytest.mark.usefixtures("either_database")
def test_a_16_what_is_no_utf8_is_refused_though_it_is_genuinely_signed(tmp_path: Path) -> None:
    with installed(tmp_path) as running:
        answer = running.send(body_of("invalid-utf8.bin"))
        assert (answer.status_code, answer.json()["type"]) == (400, "invalid-json")
        assert recorded(running) == count(running, t.receipts) == count(running, t.payloads) == 0
        refused(running, 1)
        listed = running.api("GET", "/deliveries?verdict=rejected", running.token()).json()
    assert [each["reason"] for each in listed["items"]] == ["not UTF-8"]


@pytest.mark.req("A6")
@pytest.mark.parametrize("size", ["1872", True])
def test_a_12_a_broken_contract_names_the_field_and_not_its_value(
    running: Installation, size: object
) -> None:
    answer = running.send(event(file_size=size, file_name="Geheim.pdf"))
    assert (answer.status_code, answer.json()["type"]) == (422, "event-contract")
    assert answer.json()["field"] == "/file/size"
    assert "1872" not in answer.text
    assert recorded(running) == count(running, t.receipts) == 0


@pytest.mark.req("A8")
def test_a_known_event_gets_its_receipt_also_under_a_stricter_contract(tmp_path: Path) -> None:
    body = event(note="x")
    with installed(tmp_path) as running:
        first = running.send(body)
        assert first.status_code == 202
    strict = SOURCE.replace("[sources.s.map]", 'unknown_fields = "refuse"\n[sources.s.map]')
    with installed(tmp_path, strict) as running:
        again = running.send(body)
        assert (again.status_code, again.json()["status"]) == (200, "duplicate")
        assert again.json()["receipt"] == first.json()["receipt"]
        assert running.send(event(note="y")).status_code == 409
        assert running.send(event(id="evt-2", note="x")).json()["field"] == "/note"


@pytest.mark.req("A5")
def test_a_13_big_whole_numbers_keep_every_digit(running: Installation) -> None:
    answer = running.send(body_of("big-int-ids.json"))
    assert answer.status_code == 202
    assert answer.json()["event_id"] == "9007199254740993"
    (file,) = found(running, t.files)
    assert (file.file_id, file.current) == ("1152921506151679042", "9223372036854775807")
    other = body_of("big-int-ids.json").replace(b"9007199254740993", b"9007199254740992")
    assert running.send(other).status_code == 202
    assert recorded(running) == 2


@pytest.mark.req("A5")
def test_a_15_a_nul_in_a_name_is_kept_raw_and_shown_with_a_stand_in(running: Installation) -> None:
    body = body_of("nul-in-name.json")
    assert running.send(body).status_code == 202
    assert found(running, t.payloads)[0].body == body
    (file,) = found(running, t.files)
    assert "\0" not in file.name
    assert "\u2400" in file.name


@pytest.mark.req("A4")
def test_a_17_a_body_that_is_too_large_is_413_as_soon_as_that_is_known(
    running: Installation,
) -> None:
    body = b" " * (2**20 + 1)
    assert status_of(exchange(running, post(body, signed(b""), length(len(body))))) == 413
    chunk = b"10000\r\n" + b" " * 0x10000 + b"\r\n"
    chunked = post(chunk * 32 + b"0\r\n\r\n", signed(b""), b"transfer-encoding: chunked")
    assert status_of(exchange(running, chunked)) == 413
    lying = exchange(running, post(event(), signed(event()), length(10)))
    assert status_of(lying) in {400, 401, 0}
    assert recorded(running) == count(running, t.payloads) == 0


@pytest.mark.req("A8")
def test_a_18_a_batch_keeps_its_good_entries(tmp_path: Path) -> None:
    text = SOURCE.replace("[sources.s.map]", 'batch = "/events"\n[sources.s.map]')
    body = body_of("batch-3-one-bad.json")
    with installed(tmp_path, text) as running:
        first, again = running.send(body), running.send(body)
        assert (first.status_code, again.status_code) == (202, 200)
        counts = [
            tuple(a.json()["counts"][k] for k in ("accepted", "duplicate", "rejected"))
            for a in (first, again)
        ]
        assert counts == [(2, 0, 1), (0, 2, 1)]
        assert recorded(running) == 2
        events = first.json()["events"]
        assert [e["index"] for e in events] == [0, 1, 2]
        assert [e["status"] for e in events] == ["accepted", "rejected", "accepted"]
        assert (events[1]["field"], events[1]["reason"]) == ("/file/id", "is missing")
        receipts = [[e.get("receipt") for e in a.json()["events"]] for a in (first, again)]
        assert receipts[0] == receipts[1]
        refused(running, 2)
        alone = json.dumps({"events": [json.loads(body)["events"][1]]}).encode()
        assert running.send(alone).status_code == 422


@pytest.mark.req("A6")
def test_a_batch_of_unknown_kinds_alone_is_ignored(tmp_path: Path) -> None:
    text = SOURCE.replace("[sources.s.map]", 'batch = "/events"\n[sources.s.map]')
    one = json.loads(body_of("unknown-type.json"))
    with installed(tmp_path, text) as running:
        answer = running.send(json.dumps({"events": [one]}).encode())
        assert (answer.status_code, answer.json()["status"]) == (202, "ignored")
        assert answer.json()["counts"]["ignored"] == 1


@pytest.mark.req("A6")
def test_a_18_without_a_batch_the_same_body_is_refused_whole(running: Installation) -> None:
    assert running.send(body_of("batch-3-one-bad.json")).status_code == 422
    assert recorded(running) == 0


@pytest.mark.req("A6")
def test_a_19_an_unknown_event_kind_is_stored_and_ignored(running: Installation) -> None:
    body = body_of("unknown-type.json")
    first, again = running.send(body), running.send(body)
    assert (first.status_code, first.json()["status"]) == (202, "ignored")
    assert (again.status_code, again.json()["receipt"]) == (200, first.json()["receipt"])
    assert (recorded(running), count(running, t.jobs)) == (1, 0)
    assert found(running, t.receipts)[0].verdict == "ignored"
    nameless = running.send(b'{"id":"evt-9","type":"ping"}')
    assert (nameless.status_code, nameless.json()["status"]) == (202, "ignored")


@pytest.mark.req("A14")
def test_handshakes_are_answered_as_their_documentation_says(tmp_path: Path) -> None:
    text = """
[sources.dropbox]
profile = "dropbox"
secrets = ["env:S_SECRET"]
[sources.grid]
profile = "azure-event-grid"
secrets = ["env:S_SECRET"]
"""
    with installed(tmp_path, text) as running:
        challenged = running.http.get("/hooks/dropbox?challenge=abc")
        assert (challenged.status_code, challenged.text) == (200, "abc")
        assert challenged.headers["content-type"].startswith("text/plain")
        origin = {"webhook-request-origin": "eventgrid.azure.net"}
        allowed = running.http.request("OPTIONS", "/hooks/grid", headers=origin)
        assert allowed.headers["webhook-allowed-origin"] == "eventgrid.azure.net"
        assert recorded(running) == 0

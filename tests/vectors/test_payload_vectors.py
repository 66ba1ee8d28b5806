from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import pytest

from domain import profiles
from domain.profiles import (
    ContractBreach,
    FieldMap,
    Handshake,
    Mapped,
    Source,
    SourceEvent,
    SourceSettings,
)
from tests.vectors import signature_vectors as vectors
from tests.vectors.signature_vectors import Vector

NOW = datetime(2026, 11, 30, 10, 0, tzinfo=UTC)
MEANINGS = {
    "created": {"version"},
    "updated": {"version", "ignore"},
    "signed": {"version", "ignore"},
    "ready": {"version"},
    "infected": {"ignore"},
    "canceled": {"deleted"},
    "trashed": {"deleted"},
    "deleted": {"deleted"},
    "moved": {"renamed"},
    "changed": {"changed"},
}
# What a delivery is told apart by where headers are not signed: fields of the signed body.
DERIVED = {"github", "bitbucket", "shopify", "contentful", "autodesk", "pandadoc"}
HOST = "dms.example"


def source(vector: Vector) -> Source:
    told = vectors.profile_name(vector["provider"])
    mapping = FieldMap()
    if vector["id"] == "standard_webhooks-p01":
        mapping = FieldMap(url="https://dms.example/{file_id}/{version}")
    prepared = profiles.prepare(
        SourceSettings(profile=told, secrets=(_secret(vector),), host=HOST, mapping=mapping)
    )
    assert isinstance(prepared, Source), prepared
    return prepared


def _secret(vector: Vector) -> str:
    is_adobe = vector["provider"] == "adobe_sign"
    return "CBJINVENTED1" if is_adobe else "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"


def body(vector: Vector) -> bytes:
    told = vector["body"]
    if told is None:
        return str(vector.get("body_text", "")).encode()
    raw = told if isinstance(told, str) else json.dumps(told)
    if "boundary=x" in vector["headers"].get("Content-Type", ""):
        head = '--x\r\nContent-Disposition: form-data; name="json"\r\n\r\n'
        return f"{head}{raw}\r\n--x--\r\n".encode()
    return str(raw).encode()


def read(vector: Vector) -> profiles.Reading:
    prepared = source(vector)
    request = vectors.request(vector, body(vector))
    return profiles.greeting(prepared, request) or profiles.read(prepared, request, NOW)


def events(vector: Vector) -> list[SourceEvent]:
    reading = read(vector)
    assert isinstance(reading, Mapped), reading
    found = [event for event in reading.events if isinstance(event, SourceEvent)]
    assert len(found) == len(reading.events), reading
    return found


def expected(vector: Vector) -> list[dict[str, Any]]:
    expect = vector["expect"]
    listed: list[dict[str, Any]] = expect.get("events", [expect])
    return listed


EVENTS = [v for v in vectors.payloads() if v["kind"] == "event"]


@pytest.mark.req("A7")
@pytest.mark.parametrize("vector", EVENTS, ids=lambda v: v["id"])
def test_every_published_payload_is_read_as_its_provider_means_it(vector: Vector) -> None:
    found, wanted = events(vector), expected(vector)
    assert len(found) == len(wanted)
    for event, want in zip(found, wanted, strict=True):
        is_file = bool(want["file_id"]) or want["action"] == "changed"
        assert event.action in MEANINGS[want["action"]] if is_file else {"ignore"}
        assert event.type == want["event_type"]
        assert event.file_id == (want["file_id"] or "")
        if want["version"] is not None and event.action != "changed":
            assert event.version == str(want["version"])
        if vector["provider"] not in DERIVED:
            told = want["event_id"]
            assert event.event_id == told or told is None or told.startswith("derived")
        if want["delivery_id"] and vector["provider"] not in {"github", "contentful"}:
            assert event.delivery_id == want["delivery_id"]
        address = want["download_url"] or ""
        if event.action == "version" and address.startswith("https://"):
            assert event.url == address.split(" ")[0]


@pytest.mark.req("A7")
@pytest.mark.parametrize("vector", EVENTS, ids=lambda v: v["id"])
def test_the_same_delivery_gives_the_same_event_ids_and_entries_have_their_own(
    vector: Vector,
) -> None:
    first, again = events(vector), events(vector)
    assert [event.event_id for event in first] == [event.event_id for event in again]
    assert len({event.event_id for event in first}) == len(first)
    assert [event.index for event in first] == list(range(len(first)))


@pytest.mark.req("C4")
@pytest.mark.parametrize("vector", EVENTS, ids=lambda v: v["id"])
def test_order_comes_from_the_source_where_it_tells_one(vector: Vector) -> None:
    for event, want in zip(events(vector), expected(vector), strict=True):
        told = str(want["sequence_or_time"] or "")
        if event.comparator in {"hex", "text"} and event.order is not None:
            assert event.order == told
        if event.occurred_at is not None:
            assert event.occurred_at.tzinfo is UTC


def by_id(name: str) -> Vector:
    return next(v for v in vectors.payloads() if v["id"] == name)


@pytest.mark.req("A7")
def test_a_retry_with_another_delivery_id_is_the_same_event() -> None:
    (first,), (retry,) = events(by_id("box-p01")), events(by_id("box-p02"))
    assert first.event_id == retry.event_id
    assert first.delivery_id != retry.delivery_id
    (event,) = events(by_id("cloudevents-p01"))
    assert event.event_id == events(by_id("cloudevents-p03"))[0].event_id


HANDSHAKES = [v for v in vectors.payloads() if v["kind"] == "handshake"]


@pytest.mark.req("A14")
@pytest.mark.parametrize("vector", HANDSHAKES, ids=lambda v: v["id"])
def test_a_handshake_is_answered_as_the_provider_demands(vector: Vector) -> None:
    answer, wanted = read(vector), vector["expect_response"]
    assert isinstance(answer, Handshake), answer
    assert answer.status in wanted["status"]
    headers = dict(answer.headers)
    for name, value in wanted.get("headers", {}).items():
        assert headers[name.lower()].startswith(value)
    if "body" in wanted:
        assert answer.body.decode() == wanted["body"]
    if "body_json" in wanted:
        assert json.loads(answer.body) == wanted["body_json"]
    assert bool(answer.visit) == (wanted.get("then") == "GET SubscribeURL")


CONTROLS = [v for v in vectors.payloads() if v["kind"] == "control"]
SILENT = {"github-p03", "google_drive-p01", "aws_s3-p04"}


@pytest.mark.req("A14")
@pytest.mark.parametrize("vector", CONTROLS, ids=lambda v: v["id"])
def test_a_notice_about_the_subscription_starts_no_file_work(vector: Vector) -> None:
    found = events(vector)
    assert bool(found) != (vector["id"] in SILENT)
    assert {event.action for event in found} <= {"lifecycle"}


@pytest.mark.req("A14")
@pytest.mark.parametrize("vector", vectors.payloads(), ids=lambda v: v["id"])
def test_the_answer_that_a_provider_wants_is_in_its_profile(vector: Vector) -> None:
    wanted = vector.get("expect_response", {})
    answer = source(vector).profile.answer
    if vector["kind"] != "handshake" and "status" in wanted:
        assert (answer.status or 202) in wanted["status"]
        assert (answer.body or b"").decode() == wanted.get("body", "")
    if vector["kind"] != "handshake" and "within_s" in wanted:
        assert answer.wait_s <= wanted["within_s"]


@pytest.mark.req("A6")
def test_a_new_version_without_an_address_names_the_missing_field() -> None:
    vector = by_id("standard_webhooks-p01")
    prepared = profiles.prepare(SourceSettings(secrets=(_secret(vector),)))
    assert isinstance(prepared, Source)
    reading = profiles.read(prepared, vectors.request(vector, body(vector)), NOW)
    assert reading == ContractBreach("/data/download_url", "is missing")

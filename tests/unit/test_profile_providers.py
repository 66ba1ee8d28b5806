from __future__ import annotations

import json
from pathlib import Path

import pytest

from domain import profiles
from domain.profiles import (
    ContractBreach,
    Handshake,
    HmacSettings,
    Mapped,
    Rejected,
    Source,
    SourceEvent,
)
from domain.profiles.objects import decode_key
from tests.readings import only, prepared, read, request

KEYS = json.loads((Path(__file__).parents[1] / "cases/files/object-keys.json").read_text())


@pytest.mark.parametrize("row", KEYS, ids=lambda row: f"{row['style']}:{row['key_in_event']}")
def test_a_24_an_object_key_is_decoded_once_as_its_source_writes_it(row: dict[str, str]) -> None:
    assert decode_key(row["key_in_event"], row["style"]) == row["key"]


def test_a_24_an_entry_whose_key_does_not_decode_is_rejected_and_the_others_go_on() -> None:
    record = {"eventName": "s3:ObjectCreated:Put", "eventTime": "2026-11-30T10:00:00Z"}
    records = [
        record | {"s3": {"bucket": {"name": "b"}, "object": {"key": key, "sequencer": "0A"}}}
        for key in ("%FF.pdf", "in/a+b%2Bc.pdf")
    ]
    source = prepared("minio", host="minio.example:9000")
    reading = read({"Records": records}, source)
    assert isinstance(reading, Mapped)
    bad, good = reading.events
    assert isinstance(bad, Rejected)
    assert bad.breach == ContractBreach("/s3/object/key", "does not decode as UTF-8")
    assert isinstance(good, SourceEvent)
    assert good.file_id == "b/in/a b+c.pdf"
    assert good.url == "https://minio.example:9000/b/in/a%20b%2Bc.pdf"
    raw = read({"Records": records[1:]}, prepared("minio", key_style="raw"))
    assert only(raw).file_id == "b/in/a+b%2Bc.pdf"


@pytest.mark.req("A14")
def test_a_greeting_from_a_stranger_gets_no_consent() -> None:
    source = prepared("azure-event-grid", allow=("eventgrid.azure.net",))
    known = request(b"", ("webhook-request-origin", "eventgrid.azure.net"), method="OPTIONS")
    stranger = request(b"", ("webhook-request-origin", "evil.example"), method="OPTIONS")
    yes, no = (profiles.greeting(source, asked) for asked in (known, stranger))
    assert yes is not None
    assert no is not None
    assert "webhook-allowed-origin" in dict(yes.headers)
    assert "webhook-allowed-origin" not in dict(no.headers)
    adobe = prepared("adobe-sign")
    asked = request(b"", ("x-adobesign-clientid", "someone"), method="GET")
    assert profiles.greeting(adobe, asked) is None


@pytest.mark.req("A14")
@pytest.mark.parametrize(
    "profile, method, query",
    [
        ("dropbox", "POST", "challenge=x"),
        ("dropbox", "GET", ""),
        ("dropbox", "GET", "challenge=" + "x" * 3000),
        ("dropbox", "GET", "challenge=a&challenge=b"),
        ("microsoft-graph", "GET", "validationToken=x"),
        ("microsoft-graph", "POST", ""),
        ("standard-webhooks", "GET", "challenge=x"),
    ],
)
def test_what_is_no_handshake_is_not_answered_as_one(profile: str, method: str, query: str) -> None:
    asked = request(b"", method=method, query=query)
    assert profiles.greeting(prepared(profile), asked) is None


@pytest.mark.req("A14")
def test_only_an_address_of_sns_itself_is_visited() -> None:
    body = {"Type": "SubscriptionConfirmation", "TopicArn": "arn:1", "MessageId": "m"}
    source = prepared("aws-sns", allow=("arn:1",))
    good = "https://sns.eu-central-1.amazonaws.com/?Action=ConfirmSubscription"
    answer = read(body | {"SubscribeURL": good}, source)
    assert answer == Handshake(visit=good)
    for bad in ("https://sns.evil.example/", "http://sns.eu-central-1.amazonaws.com/", None):
        assert isinstance(read(body | {"SubscribeURL": bad}, source), ContractBreach)


@pytest.mark.parametrize("name", profiles.names())
def test_every_profile_is_whole(name: str) -> None:
    profile = profiles.profile(name)
    assert profile is not None
    assert profile.title
    assert profile.schemes or profile.verifier or name == "hmac"
    assert 0 < profile.answer.wait_s <= 30
    assert not profile.is_unsigned or "signed" in profile.risk
    scheme = HmacSettings(signature="X-S") if name == "hmac" else None
    assert isinstance(prepared(name, hmac=scheme), Source)

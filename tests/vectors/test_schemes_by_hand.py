"""Schemes whose published vectors are few: recomputed here step by step, with their traps."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from domain import profiles
from domain.profiles import Mapped, Source, SourceEvent, SourceSettings
from domain.schemes import Request
from domain.signatures import Refused, Verified

pytestmark = pytest.mark.req("A1")

NOW = datetime(2025, 3, 14, 9, 26, 54, tzinfo=UTC)
SECRET = "client-secret-1"


def source(profile: str) -> Source:
    made = profiles.prepare(SourceSettings(profile=profile, secrets=("old", SECRET)))
    assert isinstance(made, Source), made
    return made


def mac(message: bytes) -> bytes:
    return hmac.new(SECRET.encode(), message, hashlib.sha256).digest()


def sent(body: bytes, headers: dict[str, str], *, url: str = "https://h.example/in", method: str = "POST") -> Request:  # fmt: skip
    path, _, query = url.removeprefix("https://h.example").partition("?")
    return Request(method, url, path, query, tuple(headers.items()), body)


def test_uploadcare_signs_the_body_in_lower_hex_with_a_label() -> None:
    body = json.dumps({"hook": {"event": "file.uploaded"}}).encode()
    made = mac(body).hex()
    uploadcare = source("uploadcare")
    for value, wanted in [
        (f"v1={made}", Verified),
        (made, Refused),
        (f"v1={made.upper()}", Refused),
        (f"v2={made}", Refused),
        (f"v1={base64.b64encode(mac(body)).decode()}", Refused),
        ("", Refused),
    ]:
        verdict = profiles.verify(uploadcare, sent(body, {"x-uc-signature": value}), NOW)
        assert isinstance(verdict, wanted), value


STAMP = "2025-03-14T09:26:54Z"


def zendesk(body: bytes, stamp: str = STAMP, *, signed: str | None = None) -> Request:
    made = base64.b64encode(mac((signed or stamp).encode() + body)).decode()
    names = ("x-zendesk-webhook-signature", "x-zendesk-webhook-signature-timestamp")
    return sent(body, dict(zip(names, (made, stamp), strict=True)))


def test_zendesk_signs_time_and_body_with_nothing_between() -> None:
    made = source("zendesk")
    assert isinstance(profiles.verify(made, zendesk(b'{"id":1}'), NOW), Verified)
    assert isinstance(profiles.verify(made, zendesk(b""), NOW), Verified)
    stale = profiles.verify(made, zendesk(b"{}"), NOW + timedelta(seconds=301))
    assert isinstance(stale, Refused)
    moved = zendesk(b"{}", signed="2025-03-14T09:26:53Z")
    assert isinstance(profiles.verify(made, moved, NOW), Refused)


MS = "1741944414123"


def hubspot(
    url: str, *, signed: str | None = None, method: str = "POST", **headers: str
) -> Request:
    body = b'[{"eventId":1}]'
    message = f"POST{signed or url}".encode() + body + MS.encode()
    made = base64.b64encode(mac(message)).decode()
    told = {"x-hubspot-signature-v3": made, "x-hubspot-request-timestamp": MS} | headers
    return sent(body, told, url=url, method=method)


PLAIN = "https://h.example/in/hubspot"


def test_hubspot_signs_method_address_body_and_milliseconds() -> None:
    made = source("hubspot")
    assert isinstance(profiles.verify(made, hubspot(PLAIN), NOW), Verified)
    late = NOW + timedelta(seconds=301)
    for request, now in [
        (hubspot(PLAIN), late),
        (hubspot(PLAIN, method="PUT"), NOW),
        (hubspot(f"{PLAIN}?x=1", signed=PLAIN), NOW),
        (hubspot(PLAIN, signed="http://h.example/in/hubspot"), NOW),
    ]:
        assert isinstance(profiles.verify(made, request, now), Refused)


@pytest.mark.parametrize(
    "called, signed",
    [
        ("?a=%3A%2F%3F%40%21%24%27%28%29%2A%2C%3B", "?a=:/?@!$'()*,;"),
        ("?a=%3a%2f", "?a=:/"),
        ("?a=%20%26%3D%23%25", "?a=%20%26%3D%23%25"),
    ],
)
def test_hubspot_decodes_named_escapes_only(called: str, signed: str) -> None:
    request = hubspot(PLAIN + called, signed=PLAIN + signed)
    assert isinstance(profiles.verify(source("hubspot"), request, NOW), Verified)


def test_hubspot_refuses_the_older_hash_as_sole_proof() -> None:
    body = b"[]"
    old = hashlib.sha256(SECRET.encode() + body).hexdigest()
    request = sent(body, {"x-hubspot-signature": old, "x-hubspot-request-timestamp": MS})
    assert isinstance(profiles.verify(source("hubspot"), request, NOW), Refused)


def read(profile: str, body: Any, **headers: str) -> list[SourceEvent]:
    reading = profiles.read(source(profile), sent(json.dumps(body).encode(), headers), NOW)
    assert isinstance(reading, Mapped), reading
    return [event for event in reading.events if isinstance(event, SourceEvent)]


@pytest.mark.req("A8")
def test_a_form_with_another_boundary_tells_the_same() -> None:
    told = '{"event":{"event_type":"x","event_time":"1741944413"},"account_guid":"a"}'
    found = []
    for boundary in ("one", "two"):
        part = 'Content-Disposition: form-data; name="json"'
        body = f"--{boundary}\r\n{part}\r\n\r\n{told}\r\n--{boundary}--\r\n".encode()
        kind = {"content-type": f"multipart/form-data; boundary={boundary}"}
        reading = profiles.read(source("dropbox-sign"), sent(body, kind), NOW)
        assert isinstance(reading, Mapped)
        assert reading.is_batch
        found.append(reading.events[0])
    assert found[0] == found[1]


@pytest.mark.req("C3")
def test_an_upload_that_slack_tells_twice_is_one_version() -> None:
    event = {"file_id": "F1", "event_ts": "1741944413.000200"}
    both = [
        read("slack", {"event_id": n, "event": event | {"type": word}})[0]
        for n, word in (("E1", "file_created"), ("E2", "file_shared"), ("E3", "file_change"))
    ]
    assert [one.version for one in both] == ["F1", "F1", "1741944413.000200"]
    assert len({one.event_id for one in both}) == 3


@pytest.mark.req("A8")
def test_a_repeat_with_a_raised_attempt_number_counts_as_the_same() -> None:
    from domain import comparison

    entry: dict[str, Any] = {
        "portalId": 1,
        "appId": 2,
        "subscriptionId": 3,
        "eventId": 4,
        "attemptNumber": 0,
    }
    entry |= {"subscriptionType": "deal.propertyChange", "propertyValue": "99", "propertyName": "d"}
    (first,), (again,) = read("hubspot", [entry]), read("hubspot", [entry | {"attemptNumber": 1}])
    assert first.event_id == again.event_id == "1:2:3:4"
    rule = source("hubspot").rule
    assert comparison.comparison_of(first.item, rule) == comparison.comparison_of(again.item, rule)

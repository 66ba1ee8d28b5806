from __future__ import annotations

import json
from datetime import UTC, datetime

import pytest

from domain import profiles
from domain.profiles import (
    FieldMap,
    HmacSettings,
    Mapped,
    Refused,
    Source,
    SourceEvent,
    SourceSettings,
    Verified,
)
from domain.schemes import Request

NOW = datetime(2026, 11, 30, 10, 15, 30, tzinfo=UTC)
SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
URL = "http://127.0.0.1:8080/hooks/s"
EVENT = SourceEvent(
    event_id="e-1",
    type="",
    action="version",
    file_id="F-17",
    version="3",
    name="M\u00fcller.pdf",
    size_bytes=52,
    sha256="ab" * 32,
    url="https://files.example/F-17",
    occurred_at=NOW,
)


def source(profile: str) -> Source:
    scheme = None
    mapping = FieldMap()
    if profile == "hmac":
        scheme = HmacSettings(
            signature="header:X-Sig",
            prefix="v1=",
            signed="{header:X-Id}\n{header:X-Time}\n{body}",
            timestamp="header:X-Time",
        )
        mapping = FieldMap(
            event_id="/id",
            delivery_id="header:X-Id",
            type="/event",
            file_id="/file/id",
            version="/file/version",
            name="/file/name",
            size="/file/size",
            url="https://dms.example/{file_id}?v={version}",
        )
    made = profiles.prepare(
        SourceSettings(
            profile=profile, secrets=(SECRET,), hmac=scheme, mapping=mapping, host="dms.example"
        )
    )
    assert isinstance(made, Source), made
    return made


MADE_BY_A_FUNCTION = {
    name
    for name in profiles.names()
    if (p := profiles.profile(name)) and (p.verifier or p.items or p.body)
}
WITHOUT_A_WORD = {"backblaze-b2"}  # its types are patterns


@pytest.mark.parametrize(
    "name", sorted(set(profiles.names()) - MADE_BY_A_FUNCTION - WITHOUT_A_WORD)
)
def test_a_source_proves_and_reads_what_was_made_in_its_way(name: str) -> None:
    made = source(name)
    request = profiles.compose(made, EVENT, URL, NOW)
    assert isinstance(request, Request), request
    assert isinstance(profiles.verify(made, request, NOW), Verified)
    reading = profiles.read(made, request, NOW)
    assert isinstance(reading, Mapped)
    (event,) = reading.events
    assert isinstance(event, SourceEvent)
    assert (event.file_id, event.action) == ("F-17", "version")
    assert event.type == profiles.word_for(made, "version")


def test_the_standard_body_is_as_the_contract_shows_it() -> None:
    request = profiles.compose(source("standard-webhooks"), EVENT, URL, NOW)
    assert isinstance(request, Request)
    assert json.loads(request.body) == {
        "type": "file.version.created",
        "timestamp": "2026-11-30T10:15:30Z",
        "data": {
            "file_id": "F-17",
            "version": "3",
            "name": "M\u00fcller.pdf",
            "size": 52,
            "sha256": "ab" * 32,
            "download_url": "https://files.example/F-17",
        },
    }
    assert request.header("webhook-id") == "e-1"


@pytest.mark.parametrize("name", sorted(MADE_BY_A_FUNCTION | WITHOUT_A_WORD))
def test_what_no_map_can_write_is_refused_with_a_reason(name: str) -> None:
    refused = profiles.compose(source(name), EVENT, URL, NOW)
    assert isinstance(refused, Refused)
    assert name in refused.reason

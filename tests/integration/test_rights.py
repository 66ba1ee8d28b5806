"""No payload chooses whose it is, where its bytes come from, or what may be done with it."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import pytest

from domain import profiles
from domain.profiles import Mapped, SourceEvent, SourceSettings
from domain.schemes import Request

NOW = datetime(2026, 11, 30, 10, 0, tzinfo=UTC)
SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
FOREIGN = "evil.example"
# Buckets are hosts of Amazon's own in each region; the download asks its list of hosts as ever.
STORES = {"aws-sns", "aws-s3", "aws-eventbridge"}


def templates(name: str) -> list[str]:
    profile = profiles.profile(name)
    assert profile is not None
    url = profile.mapping.url
    return [place for place in ((url,) if isinstance(url, str) else url) if "://" in place]


@pytest.mark.req("A3")
@pytest.mark.parametrize("name", [n for n in profiles.names() if n not in STORES])
def test_the_host_in_an_address_that_is_built_is_never_taken_from_the_payload(name: str) -> None:
    for template in templates(name):
        host = template.partition("://")[2].partition("/")[0]
        # What follows the host at once must bring its own slash: the test below.
        assert "{" not in host.replace("{host}", "").replace("{+", ""), template


@pytest.mark.req("A3")
def test_what_stands_in_a_payload_cannot_break_out_of_the_path_of_an_address() -> None:
    mapping = profiles.FieldMap(url="https://{host}/files/{file_id}/content")
    source = profiles.prepare(
        SourceSettings(secrets=(SECRET,), mapping=mapping, host="dms.example")
    )
    assert isinstance(source, profiles.Source)
    for file_id in (f"@{FOREIGN}/", f"../../{FOREIGN}", f"x?host={FOREIGN}#", f"\\\\{FOREIGN}"):
        data: dict[str, Any] = {"file_id": file_id, "version": 1, "name": "a.pdf"}
        body = json.dumps({"type": "file.version.created", "data": data}).encode()
        headers = (("webhook-id", "m1"), ("webhook-timestamp", "1"))
        reading = profiles.read(source, Request("POST", "", "/", "", headers, body), NOW)
        assert isinstance(reading, Mapped), reading
        (event,) = reading.events
        assert isinstance(event, SourceEvent)
        assert event.url.startswith("https://dms.example/files/")
        assert event.url.endswith("/content")
        assert event.url.count("/") == 5


@pytest.mark.req("A3")
@pytest.mark.parametrize("uri", [f".{FOREIGN}/x", f"@{FOREIGN}/x", f":80@{FOREIGN}/x", "x", "8/x"])
def test_a_path_from_the_payload_cannot_make_another_host_of_ours(uri: str) -> None:
    source = profiles.prepare(
        SourceSettings(profile="docusign", secrets=(SECRET,), host="dms.example")
    )
    assert isinstance(source, profiles.Source)
    for told, url in ((uri, ""), (f"/{uri}", f"https://dms.example/{uri}/documents/combined")):
        summary = {"statusChangedDateTime": "2026-11-30T09:00:00.0000000Z"}
        data = {"envelopeId": "e-1", "accountId": "a-1", "envelopeSummary": summary}
        top = {"event": "envelope-completed", "uri": told, "data": data}
        request = Request("POST", "", "/", "", (), json.dumps(top).encode())
        reading = profiles.read(source, request, NOW)
        assert isinstance(reading, Mapped), reading
        (event,) = reading.events
        assert isinstance(event, SourceEvent)
        assert event.url == url.replace("@", "%40").replace(":80", "%3A80")

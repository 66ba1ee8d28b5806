from __future__ import annotations

import json
from datetime import UTC, datetime

import pytest

from app.cli.judgement import PLACEHOLDER_HOST, Judge, Judgement
from domain import profiles
from domain.profiles import Source, SourceSettings, Verified
from domain.schemes import NO_PRIMITIVES
from tests.vectors import signature_vectors as vectors
from tests.vectors.signature_vectors import Vector

NOW = datetime(2026, 11, 30, 10, 0, tzinfo=UTC)
KINDS = {"event": "valid", "control": "control", "handshake": "handshake"}


def _body(vector: Vector) -> bytes:
    told = vector["body"]
    if told is None:
        return str(vector.get("body_text", "")).encode()
    raw = told if isinstance(told, str) else json.dumps(told)
    if "boundary=x" in vector["headers"].get("Content-Type", ""):
        head = '--x\r\nContent-Disposition: form-data; name="json"\r\n\r\n'
        return f"{head}{raw}\r\n--x--\r\n".encode()
    return raw.encode()


def judged(vector: Vector) -> Judgement:
    is_adobe = vector["provider"] == "adobe_sign"
    secret = "CBJINVENTED1" if is_adobe else "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
    settings = SourceSettings(
        profile=vectors.profile_name(vector["provider"]), secrets=(secret,), host=PLACEHOLDER_HOST
    )
    source = profiles.prepare(settings)
    assert isinstance(source, Source)
    judge = Judge(source, NO_PRIMITIVES, NOW, is_bare=True)
    request = vectors.request(vector, _body(vector))
    if profiles.greeting(source, request) is not None:
        return judge.judge(request)
    # The published payloads carry no real signatures: what is judged here is the reading alone.
    return judge._read(profiles.read(source, request, NOW), request, Verified("k"))


@pytest.mark.req("A14")
@pytest.mark.parametrize("vector", vectors.payloads(), ids=lambda v: v["id"])
def test_every_published_payload_is_explained_as_what_it_is(vector: Vector) -> None:
    found = judged(vector)
    assert found.verdict == KINDS[vector["kind"]], found.reason
    assert bool(found.events) == (found.verdict == "valid") or found.verdict == "control"
    assert all(PLACEHOLDER_HOST not in event.event_id for event in found.events)

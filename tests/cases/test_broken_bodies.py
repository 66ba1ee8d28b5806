"""Bodies that are no HTTP, and refusals that try to bury others, over real HTTP."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from app.clock import SettableClock
from app.store import tables as t
from tests.deliveries import length, post, refused, signed
from tests.installations import (
    NOW,
    STAMPED,
    Installation,
    event,
    exchange,
    found,
    installed,
    recorded,
    stamped,
    status_of,
)

CHUNKED = b"transfer-encoding: chunked"


@pytest.fixture
def running(tmp_path: Path) -> Iterator[Installation]:
    with installed(tmp_path) as installation:
        yield installation


@pytest.mark.req("A5")
@pytest.mark.parametrize(
    "body",
    [
        b'{"a":1}\r\n\r\n',
        b"FFFFFFFFFFFFFFFFFF\r\n{}\r\n0\r\n\r\n",
        b"2\r\n{}XX\r\n0\r\n\r\n",
        b"-2\r\n{}\r\n0\r\n\r\n",
    ],
)
def test_a_body_that_is_no_chunks_is_400_and_listed_with_its_reason(
    running: Installation, body: bytes
) -> None:
    answer = exchange(running, post(body, signed(event()), CHUNKED))
    assert status_of(answer) == 400
    told = json.loads(answer.partition(b"\r\n\r\n")[2])
    assert (told["type"], told["status"]) == ("invalid-body", 400)
    assert recorded(running) == 0
    refused(running, 1)
    assert found(running, t.deliveries)[0].reason == "the body ended early or is not in its form"


@pytest.mark.req("A5")
def test_a_body_that_is_cut_off_is_listed(running: Installation) -> None:
    answer = exchange(running, post(b"{", signed(event()), length(100)), finish=True)
    assert status_of(answer) in {0, 400}
    refused(running, 1)
    assert recorded(running) == 0


@pytest.mark.req("A3")
def test_strange_clocks_of_strangers_do_not_bury_why_the_source_is_refused(tmp_path: Path) -> None:
    clock = SettableClock(NOW)
    with installed(tmp_path, STAMPED, clock=clock) as running:
        for off_s in range(1000, 1040):
            headers = stamped(event(), NOW - timedelta(seconds=off_s))
            assert running.send(event(), source="t", **headers).status_code == 401
        wrong = stamped(event(note="other bytes"), NOW)
        assert running.send(event(), source="t", **wrong).status_code == 401
        refused(running, 41)
        reasons = {row.reason: row.count for row in found(running, t.deliveries)}
    (signature,) = (count for reason, count in reasons.items() if "no signature" in reason)
    assert signature == 1
    first, rest = (pair for pair in reasons.items() if "clock off by" in pair[0])
    assert first[0].startswith("clock off by 1000 s")
    assert rest[0].startswith("clock off by 1039 s")
    assert (first[1], rest[1]) == (1, 39)


@pytest.mark.req("A5")
def test_the_place_of_a_mistake_in_json_makes_no_kind_of_its_own(running: Installation) -> None:
    for blanks in range(30):
        assert running.send(b" " * blanks + b"{} x").status_code == 400
    assert running.send(b"[]").status_code == 400
    refused(running, 31)
    reasons = [row.reason for row in found(running, t.deliveries)]
    assert len(reasons) == 3
    assert "not an object" in reasons
    assert any(reason.endswith("at character 32") for reason in reasons)

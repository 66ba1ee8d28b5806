"""Orders about many messages over the API: narrowed, seen, paused, resumed, given up, limited."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from app.store import tables as t
from tests.installations import Installation, event, found, installed
from tests.workings import deliver, process

WHY = {"reason": "they lost a day"}


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Installation]:
    """Three files whose messages were delivered."""
    folder: Path = tmp_path_factory.mktemp("campaigns")
    with installed(folder) as installation:
        for n in range(3):
            installation.send(event(id=f"evt-{n}", file_id=f"f-{n}"))
        process(installation)
        deliver(installation)
        yield installation


def order(running: Installation, token: str, **more: Any) -> Any:
    return running.api("POST", "/campaigns", token, json={**WHY, **more})


@pytest.mark.req("F2", "F6")
def test_a_preview_counts_what_each_filter_leaves(running: Installation) -> None:
    admin = running.token()
    file = found(running, t.files)[0].stream
    message = found(running, t.messages)[0].id
    expected: list[tuple[dict[str, Any], int]] = [
        ({}, 3),
        ({"destination": "erp", "state": "delivered", "source": "s"}, 3),
        ({"state": "dead"}, 0),
        ({"destination": "crm"}, 0),
        ({"file": file}, 1),
        ({"ids": [message, "msg_x"]}, 1),
        ({"since": "2026-11-30T10:00:00Z", "until": "2026-12-01T00:00:00Z"}, 3),
        ({"until": "2026-11-29T00:00:00Z"}, 0),
        ({"error": "answered 422"}, 0),
        ({"answer": "no such record"}, 0),
    ]
    for wanted, count in expected:
        seen = order(running, admin, filter=wanted, dry_run=True).json()
        assert (seen["matched"], seen["would"], seen["refused"]) == (count, count, {}), wanted
    assert order(running, admin, filter={"file": "fil_x"}, dry_run=True).status_code == 404
    assert order(running, admin, filter={"nonsense": "x"}).status_code in {400, 422}
    assert order(running, admin, rate=0).status_code in {400, 422}
    assert running.api("GET", "/campaigns", admin).json()["items"] == []


@pytest.mark.req("F2", "F6", "F7")
def test_an_order_is_given_once_under_its_key_seen_by_whom_it_concerns_and_ended(
    running: Installation,
) -> None:
    admin, limited = running.token(), running.token("operator", "source:s")
    stranger = running.token("operator", "source:x")
    key = {"headers": {"idempotency-key": "k-1"}}
    body = {**WHY, "filter": {"destination": "erp"}}
    first = running.api("POST", "/campaigns", limited, json=body, **key).json()
    assert running.api("POST", "/campaigns", limited, json=body, **key).json() == first
    path = f"/campaigns/{first['id']}"
    seen = running.api("GET", path, admin).json()
    assert (seen["state"], seen["filter"]["destination"]) == ("gathering", "erp")
    assert [c["id"] for c in running.api("GET", "/campaigns", limited).json()["items"]] == [
        first["id"]
    ]
    assert running.api("GET", "/campaigns", stranger).json()["items"] == []
    assert running.api("POST", f"{path}/stop", stranger, json=WHY).status_code == 404

    def ordered(verb: str) -> int:
        return int(running.api("POST", f"{path}/{verb}", admin, json=WHY).status_code)

    assert [ordered(verb) for verb in ("resume", "pause", "pause")] == [409, 200, 409]
    assert running.api("GET", path, admin).json()["state"] == "paused"
    assert [ordered(verb) for verb in ("stop", "stop", "resume")] == [200, 409, 409]
    assert running.api("GET", path, admin).json()["state"] == "stopped"
    assert found(running, t.controls) == []
    audit = running.api("GET", "/audit", admin).json()["items"]
    types = [each["type"] for each in audit[:4]]
    assert types == ["CampaignEnded", "Resumed", "Paused", "CampaignBegun"]
    assert {each["cause"]["reason"] for each in audit[:4]} == {WHY["reason"]}

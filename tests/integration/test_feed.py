"""The feed: waited for, live, and across a restore."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from app.ledger.requests import Control
from app.store import tables as t
from domain.commands import Cause
from domain.installation import LogRestored
from tests.installations import Installation, event, found, installed
from tests.workings import process


@pytest.fixture
def running(tmp_path: Path) -> Iterator[Installation]:
    with installed(tmp_path) as made:
        yield made


def told(running: Installation, number: int) -> str:
    """One more message; its id."""
    known = {row.id for row in found(running, t.messages)}
    running.send(event(id=f"evt-{number}", file_id=f"f-{number}"))
    process(running, content=b"%d" % number)
    (new,) = {row.id for row in found(running, t.messages)} - known
    return str(new)


@pytest.mark.req("E9")
def test_one_who_waits_gets_the_message_as_soon_as_there_is_one(running: Installation) -> None:
    token = running.token("receiver", "destination:erp")
    answers: list[dict[str, object]] = []

    def wait() -> None:
        answers.append(running.api("GET", "/feed/erp?wait=20", token).json())

    waiting = threading.Thread(target=wait)
    waiting.start()
    message = told(running, 1)
    waiting.join(30)
    (page,) = answers
    assert [item["id"] for item in page["items"]] == [message]  # type: ignore[attr-defined]
    after = page["next"]
    empty = running.api("GET", f"/feed/erp?wait=0.1&after={after}", token).json()
    assert empty["items"] == []
    assert running.api("GET", "/feed/erp?wait=3600", token).status_code == 400


@pytest.mark.req("E9")
def test_the_feed_comes_live_and_goes_on_behind_the_last_event_seen(running: Installation) -> None:
    token = running.token("receiver", "destination:erp")
    ids = [told(running, number) for number in range(3)]

    def live(**headers: str) -> Iterator[tuple[str, str]]:
        asked = {"authorization": f"Bearer {token}", "accept": "text/event-stream"}
        url = "/api/v1/feed/erp"
        with running.http.stream("GET", url, headers={**asked, **headers}) as answer:
            cursor = ""
            for line in answer.iter_lines():
                if line.startswith("id: "):
                    cursor = line[4:]
                if line.startswith("data: "):
                    yield json.loads(line[6:])["id"], cursor

    stream = live()
    (first, cursor), (second, _) = next(stream), next(stream)
    stream.close()  # type: ignore[attr-defined]
    assert [first, second] == ids[:2]
    stream = live(**{"last-event-id": cursor})
    assert [next(stream)[0], next(stream)[0]] == ids[1:]
    stream.close()  # type: ignore[attr-defined]


@pytest.mark.req("E9", "F9")
def test_a_cursor_from_beyond_a_restore_gets_the_place_to_read_again_from(
    running: Installation,
) -> None:
    token = running.token("receiver", "destination:erp")
    told(running, 1)
    early = running.api("GET", "/feed/erp", token).json()["next"]
    restored = LogRestored(at_ms=1, incarnation=2)
    running.ledger.submit(Control(restored, Cause("system"))).result()
    message = told(running, 2)
    running.ledger.book.incarnation = 2
    page = running.api("GET", f"/feed/erp?after={early}", token).json()
    assert [item["id"] for item in page["items"]] == [message]
    late = "1." + page["next"].partition(".")[2]
    refused = running.api("GET", f"/feed/erp?after={late}", token)
    assert refused.status_code == 410
    again = running.api("GET", f"/feed/erp?after={refused.json()['next']}", token).json()
    assert [item["id"] for item in again["items"]] == [message]

"""The demo can fail: the oracle knows what must come, the reckoning sees what did not."""

from __future__ import annotations

import hashlib
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from app.cli.client import Api, Reply
from app.cli.demo import inside
from app.cli.demo.documents import Document, Flaw, documents
from app.cli.demo.journal import Journal
from app.cli.demo.oracle import expected
from app.cli.demo.script import Act, Author, Await, Contradict, Scene, Tell
from app.cli.demo.tally import Tally, tally
from app.clock import SeededDice
from domain.profiles import Action, SourceEvent

BEGAN = datetime(2026, 11, 30, 10, 0, tzinfo=UTC)
COMPLETED, FAILED = "file.version.completed", "file.version.failed"
CONTENT = b"bytes"
DIGEST = hashlib.sha256(CONTENT).hexdigest()


def tell(number: int, action: Action = "version") -> Tell:
    return Tell(SourceEvent(f"evt_{number}", "", action, "F-1", version=str(number)))


def scene(*acts: Act, flaw: Flaw = "") -> Scene:
    return Scene(Document("F-1", "a.pdf", "application/pdf", "P", (CONTENT,), flaw), acts)


@pytest.mark.parametrize(
    "acts, must, may",
    [
        ([tell(1)], {(COMPLETED, "1")}, set()),
        ([tell(1), tell(1)], {(COMPLETED, "1")}, set()),
        ([tell(2), tell(1)], {(COMPLETED, "2")}, set()),
        ([tell(3), tell(1), tell(2)], {(COMPLETED, "3")}, set()),
        ([tell(1), tell(2)], {(COMPLETED, "2")}, {(COMPLETED, "1")}),
        ([tell(1), Await("1"), tell(2)], {(COMPLETED, "1"), (COMPLETED, "2")}, set()),
        ([tell(1), Contradict(tell(1).event)], {(COMPLETED, "1")}, set()),
        (
            [tell(1), Await("1"), tell(9, "deleted")],
            {(COMPLETED, "1"), ("file.deleted", "")},
            set(),
        ),
    ],
)
def test_the_oracle_knows_what_must_come_and_what_may(
    acts: list[Act], must: set[tuple[str, str]], may: set[tuple[str, str]]
) -> None:
    found = expected(scene(*acts))
    assert (set(found.must), set(found.may)) == (must, may)


def test_a_broken_document_must_be_told_as_failed() -> None:
    assert expected(scene(tell(1), flaw="truncated")).must == {(FAILED, "1")}


def test_the_play_has_everything_that_goes_wrong_in_it() -> None:
    author = Author("http://127.0.0.1:9001", BEGAN, SeededDice(1))
    scenes = author.scenes(documents())
    acts = Counter(type(act).__name__ for each in scenes for act in each.acts)
    actions = Counter(
        act.event.action for each in scenes for act in each.acts if isinstance(act, Tell)
    )
    moods = {type(mood).__name__ for each in scenes for _, some in each.moods for mood in some}
    late = [each for each in scenes if len(expected(each).must) < len(each.document.versions)]
    assert len(scenes) >= 40
    assert acts["Contradict"] >= 5
    assert min(actions["deleted"], actions["renamed"]) >= 2
    assert moods == {"NotYet", "Busy", "Short", "Broken", "Slow"}
    assert late


def arrival(**changed: Any) -> dict[str, Any]:
    told = {
        "verdict": "new",
        "type": COMPLETED,
        "file_id": "F-1",
        "version": "1",
        "message_id": "msg_1",
        "body_sha256": "aa",
        "reason": "",
        "artifacts": ["original"],
        "artifact_ids": ["art_1"],
        "digests": [DIGEST],
    }
    return told | changed


def reckoned(folder: Path, *arrivals: dict[str, Any], content: bytes = CONTENT) -> Tally:
    blobs = folder / "blobs"
    blobs.mkdir()
    (blobs / DIGEST).write_bytes(content)
    journal = Journal(folder / "erp.jsonl")
    for each in arrivals:
        journal.write(each)
    return tally((scene(tell(1)),), folder, blobs=blobs)


def test_one_message_and_its_repeat_are_as_it_should_be(tmp_path: Path) -> None:
    found = reckoned(tmp_path, arrival(), arrival(verdict="repeat"), arrival(verdict="failed"))
    assert (found.faults, found.received, found.sent, found.duplicates) == ((), 1, 3, 1)


@pytest.mark.parametrize(
    "arrivals, fault",
    [
        ([], "lost: F-1"),
        ([arrival(verdict="failed")], "lost: F-1"),
        ([arrival(), arrival(message_id="msg_2", verdict="old")], "told twice: F-1"),
        ([arrival(), arrival(verdict="repeat", body_sha256="bb")], "sent again with other bytes"),
        (
            [arrival(), arrival(type=FAILED, verdict="new", artifact_ids=["art_2"])],
            "made twice: F-1 1 original",
        ),
        ([arrival(), arrival(version="2")], "should never have been told: F-1"),
        ([arrival(), arrival(file_id="F-9")], "should never have been told: F-9"),
        ([arrival(), arrival(verdict="refused", reason="why")], "refused by the receiver"),
        ([arrival(digests=["0" * 64])], "told but not stored"),
    ],
)
def test_whatever_is_not_as_it_should_be_is_said(
    tmp_path: Path, arrivals: list[dict[str, Any]], fault: str
) -> None:
    assert any(text.startswith(fault) for text in reckoned(tmp_path, *arrivals).faults)


def test_bytes_that_do_not_match_their_name_are_seen(tmp_path: Path) -> None:
    (fault,) = reckoned(tmp_path, arrival(), content=b"others").faults
    assert DIGEST in fault


def api(**lists: list[dict[str, Any]]) -> Api:
    return Api(lambda call: Reply(200, {"items": lists[call.path.strip("/")], "next": None}))


FILE = {"file_id": "F-1", "state": "completed", "result": "1"}


@pytest.mark.parametrize(
    "files, rows, seen, fault",
    [
        ([FILE], [], {}, None),
        ([FILE | {"state": "failed"}], [], {}, "F-1 is failed inside"),
        ([FILE | {"result": "0"}], [], {}, "F-1 shows the result of 0"),
        ([], [], {}, "F-1 is None inside"),
        ([FILE], [{"id": "job_1", "state": "waiting"}], {}, "job_1 is still waiting"),
        ([FILE], [], {"conflict": 1}, "0 conflict inside, 1 were answered"),
    ],
)
def test_the_installation_is_believed_only_where_it_agrees_with_what_was_seen(
    files: list[dict[str, Any]],
    rows: list[dict[str, Any]],
    seen: dict[str, int],
    fault: str | None,
) -> None:
    told = api(files=files, jobs=rows, messages=[], deliveries=[])
    found = inside.contradictions(told, (scene(tell(1)),), seen)
    assert bool(found) == (fault is not None)
    assert all(text.startswith(fault or "-") for text in found[:1])

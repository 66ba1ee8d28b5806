"""What the reading commands say of an installation with a past."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests import slips
from tests.slips import Past


@pytest.fixture(scope="module")
def past(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Past]:
    with slips.past(tmp_path_factory.mktemp("past")) as made:
        yield made


def id_of(past: Past, file_id: str) -> str:
    (row,) = past.json("files", "--file-id", file_id)["items"]
    return str(row["id"])


@pytest.mark.req("F8")
@pytest.mark.req("F2")
def test_status_says_what_needs_a_human_and_what_to_type(past: Past) -> None:
    shown = past.run("status")
    assert shown.status == 1
    assert "1 job of download gave up" in shown.out
    assert "1 message to erp gave up" in shown.out
    assert "laufzettel retry --name erp --dry-run" in shown.out
    document = past.run("status", "--json").document
    assert {need["what"] for need in document["needs"]} == {
        "dead-job",
        "dead-message",
        "held",
        "conflict",
    }


@pytest.mark.req("F5")
@pytest.mark.req("C1")
def test_files_are_found_by_name_and_state_with_the_reason(past: Past) -> None:
    assert len(past.json("files")["items"]) == 5
    failed = past.json("files", "--state", "failed")["items"]
    assert {row["file_id"] for row in failed} == {"F-lost", "F-refused"}
    shown = past.run("files", "LOST").out
    assert "failed: needs a human" in shown
    assert "contracts/F-lost" in shown
    assert past.run("files", "nothing of the kind").out.strip() == "No file matches."


def test_a_list_goes_on_where_its_cursor_says(past: Past) -> None:
    first = past.json("files", "--limit", "3")
    rest = past.json("files", "--cursor", first["next"])
    assert (len(first["items"]), len(rest["items"]), rest["next"]) == (3, 2, None)
    assert "There is more" in past.run("files", "--limit", "3").out


@pytest.mark.req("F2")
@pytest.mark.req("E8")
@pytest.mark.req("E12")
def test_the_slip_shows_every_station_of_a_file(past: Past) -> None:
    shown = past.run("show", "contracts/F-good")
    assert shown.status == 0
    for told in (
        "good.txt",
        "completed · current version 1",
        "repeat: answered with the first receipt, event F-good-v1",
        "try 1: done",
        "made: file.version.completed, msg_",
        'answered 200 {"id": "4711"}',
        "their id 4711",
        "original",
    ):
        assert told in shown.out, told
    stations = [shown.out.index(told) for told in ("accepted, event", "try 1: done", "made: ")]
    assert stations == sorted(stations)


def test_the_slip_of_a_failed_file_says_why_and_what_to_type(past: Past) -> None:
    shown = past.run("show", "F-lost").out
    assert "; tried again at " in shown
    assert "try it again:  laufzettel retry job_" in shown
    refused = past.run("show", "F-refused").out
    assert "answered 422 no such order" in refused
    assert "send it again: laufzettel retry msg_" in refused


@pytest.mark.req("F5")
def test_a_file_is_named_by_id_place_message_receipt_or_name(past: Past) -> None:
    wanted = id_of(past, "F-good")
    (message,) = [m for m in past.json("messages")["items"] if m["file"] == wanted]
    (event,) = [e for e in past.json("events")["items"] if e["file"] == wanted]
    names = (wanted, "contracts/F-good", "F-good", message["id"], event["receipt"])
    assert {past.json("show", name)["id"] for name in names} == {wanted}
    assert past.json("show", "lost.txt")["file_id"] == "F-lost"


@pytest.mark.req("F5")
def test_an_ambiguous_name_lists_the_files_and_is_wrong_usage(past: Past) -> None:
    shown = past.run("show", "good.txt")
    assert shown.status == 2
    assert "several files are called good.txt → name one by its id" in shown.err
    assert "contracts/F-good" in shown.err
    assert "contracts/F-twin" in shown.err
    missing = past.run("show", "nothing-of-the-kind")
    assert (missing.status, "no file is called" in missing.err) == (1, True)


@pytest.mark.req("F3")
def test_a_file_is_shown_as_of_a_position_and_as_of_a_time(past: Past) -> None:
    wanted = id_of(past, "F-good")
    log = past.json("log", "--stream", wanted)["items"]
    first = past.json("show", wanted, "--at", str(log[0]["position"]))
    assert (first["state"], first["versions"][0]["artifacts"]) == ("received", [])
    last = past.json("show", wanted, "--at", "2100-01-01T00:00:00Z")
    assert last["state"] == "completed"
    assert past.run("show", wanted, "--at", "yesterday").status == 2
    assert past.run("show", wanted, "--at", "2020-01-01T00:00:00Z").status == 1


@pytest.mark.req("B1")
@pytest.mark.req("B5")
def test_the_log_is_read_in_order_with_causes_and_by_default_from_its_end(past: Past) -> None:
    whole = past.json("log", "--after", "0", "--limit", "1000")["items"]
    assert [row["position"] for row in whole] == list(range(1, len(whole) + 1))
    assert past.json("log", "--limit", "5")["items"] == whole[-5:]
    rest = past.json("log", "--after", str(whole[2]["position"]), "--limit", "1000")["items"]
    assert rest == whole[3:]
    assert "VersionReported" in past.run("log", "--type", "VersionReported").out


@pytest.mark.req("F8")
def test_each_list_shows_its_rows_and_the_document_of_the_api(past: Past) -> None:
    for command, told in (
        ("events", "F-good-v1"),
        ("deliveries", "accepted"),
        ("jobs", "gave up: needs a human"),
        ("messages", "file.version.completed"),
        ("dead", "laufzettel retry --name erp"),
        ("stats", "destination"),
        ("audit", "No operator has done anything"),
    ):
        shown = past.run(command)
        assert (shown.status, told in shown.out) == (0, True), (command, shown.out)
        document = past.json(command)
        assert "items" in document or command == "stats", command
    repeats = past.json("deliveries", "--verdict", "duplicate")["items"]
    assert [row["event_id"] for row in repeats] == ["F-good-v1"]
    dead = past.json("jobs", "--state", "dead")["items"]
    assert [row["kind"] for row in dead] == ["download"]
    assert past.json("messages", "--destination", "erp", "--state", "dead")["items"]
    assert past.json("messages", "--reference", "4711")["items"]
    assert past.json("events", "--event-id", "F-lost-v1")["items"][0]["state"] == "failed"


def test_hostile_names_move_no_cursor_and_forge_no_line(tmp_path: Path) -> None:
    from app.cli import words

    assert words.clean("a\x1b[2Jb\nc\u202ed") == "a\ufffd[2Jb\ufffdc\ufffdd"


@pytest.mark.parametrize(
    "told, known",
    [
        (("deliveries", "--source", "nope"), "there is no source nope → name one of: contracts"),
        (("files", "--source", "nope"), "there is no source nope → name one of: contracts"),
        (("messages", "--destination", "nope"), "name one of: erp"),
        (("jobs", "--kind", "nope"), "there is no kind nope → name one of: download, transform"),
        (("jobs", "--state", "nope"), "there is no state nope → name one of: running, ready"),
        (("files", "--state", "nope"), "there is no state nope → name one of: waiting, received"),
        (("deliveries", "--verdict", "nope"), "there is no verdict nope → name one of: accepted"),
    ],
)
def test_a_filter_that_nothing_can_match_names_the_values_that_are_known(
    past: Past, told: tuple[str, ...], known: str
) -> None:
    shown = past.run(*told)
    assert (shown.status, known in shown.err) == (2, True), shown.err


@pytest.mark.parametrize(
    "told, mend",
    [
        (("show", "F-good", "--at", "yesterday"), "write a time like 2026-"),
        (("audit", "--since", "yesterday"), "write a time like 2026-"),
        (("files", "--cursor", "x"), "from `next` of the JSON"),
        (("show", "F-good", "--at", "2020-01-01"), "nothing was known of the file at 2020-01-01 →"),
        (("retry", "broken.pdf", "--reason", "x"), "no job has the id broken.pdf → name it by its"),
        (("resolve", "dlv_9", "--outcome", "dismiss", "--reason", "x"), "no delivery has the id"),
        (("redeliver", "msg_x", "--reason", "x"), "no message has the id msg_x"),
        (("retry",), "nothing is named → name some by id, or a filter, or --all"),
        (("cancel",), "nothing is named → name it by its id"),
    ],
)
def test_a_value_that_cannot_be_taken_is_told_with_an_example(
    past: Past, told: tuple[str, ...], mend: str
) -> None:
    shown = past.run(*told)
    assert (shown.status in {1, 2}, mend in shown.err) == (True, True), shown.err

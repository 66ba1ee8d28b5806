"""Orders on the command line, each on its own copy of an installation with a past."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from app.config import Config, load
from tests import runtimes as r
from tests import slips
from tests.slips import Past

WHY = ("--reason", "a test", "--operator", "Zoë")


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Past]:
    with slips.past(tmp_path_factory.mktemp("past")) as made:
        yield made


@pytest.fixture
def past(original: Past, tmp_path: Path) -> Past:
    shutil.copytree(original.folder, tmp_path / "copy")
    return Past(tmp_path / "copy", original.config)


def dead_job(past: Past) -> str:
    (row,) = past.json("jobs", "--state", "dead")["items"]
    return str(row["id"])


def message(past: Past, state: str) -> str:
    (row,) = past.json("messages", "--state", state)["items"]
    return str(row["id"])


def state_of(past: Past, work: str) -> str:
    kind = "messages" if work.startswith("msg_") else "jobs"
    rows = past.json(kind, "--limit", "100")["items"]
    return next(str(row["state"]) for row in rows if row["id"] == work)


def fates(past: Past, *order: str) -> list[str]:
    return [item["fate"] for item in past.json(*order)["items"]]


@pytest.mark.req("F2")
def test_dead_work_is_tried_again_by_id_first_dry_and_once(past: Past) -> None:
    job, dead = dead_job(past), message(past, "dead")
    order = ("retry", job, dead)
    assert fates(past, *order, "--dry-run") == ["would be done", "would be done"]
    assert (state_of(past, job), state_of(past, dead)) == ("dead", "dead")
    assert fates(past, *order, "--yes", *WHY) == ["done", "done"]
    assert (state_of(past, job), state_of(past, dead)) == ("ready", "pending")
    assert fates(past, *order, *WHY) == ["done already", "done already"]


@pytest.mark.req("F2")
def test_dead_letters_are_tried_again_by_filter_with_a_count_first(past: Past) -> None:
    nothing = past.run("retry", *WHY)
    assert (nothing.status, "or a filter, or --all" in nothing.err) == (2, True)
    dry = past.json("retry", "--all", "--dry-run")
    assert (dry["dry_run"], dry["matched"], dry["done"]) == (True, 2, 2)
    many = past.run("retry", "--all", *WHY)
    assert (many.status, "this is about 2 things → say --yes" in many.err) == (2, True)
    one = past.run("retry", "--name", "erp", "--error", "answered 422: no such order", *WHY)
    assert (one.status, "1 done" in one.out) == (0, True)
    assert past.json("dead")["items"][0]["kind"] == "job"
    assert past.json("retry", "--all", *WHY)["done"] == 1
    assert "Nothing matches." in past.run("retry", "--all", *WHY).out


@pytest.mark.req("F2")
def test_what_gave_up_is_discarded_for_good_and_the_audit_says_who_and_why(past: Past) -> None:
    job = dead_job(past)
    assert fates(past, "discard", job, "--dry-run") == ["would be done"]
    assert fates(past, "discard", job, *WHY) == ["done"]
    assert fates(past, "discard", job, *WHY) == ["done already"]
    assert state_of(past, job) == "discarded"
    (row,) = past.json("audit", "--by", "Zoë")["items"]
    assert (row["type"], row["cause"]["reason"]) == ("JobDiscarded", "a test")
    shown = past.run("audit").out
    assert "Zoë" in shown
    assert job in shown
    assert past.json("audit", "--by", "somebody else")["items"] == []
    assert past.json("discard", "--all", "--yes", *WHY)["done"] == 1


@pytest.mark.req("E5")
@pytest.mark.req("F2")
def test_a_held_message_is_resolved_by_hand(past: Past) -> None:
    held = message(past, "held")
    order = ("resolve", held, "--outcome", "delivered")
    assert fates(past, *order, "--dry-run") == ["would be done"]
    assert fates(past, *order, *WHY) == ["done"]
    assert state_of(past, held) == "delivered"
    assert fates(past, *order, *WHY) == ["done already"]
    wrong = past.run("resolve", held, "--outcome", "lost", *WHY)
    assert wrong.status == 2


@pytest.mark.req("A8")
@pytest.mark.req("F2")
def test_a_conflict_in_quarantine_is_dismissed_once(past: Past) -> None:
    (row,) = past.json("deliveries", "--verdict", "conflict")["items"]
    order = ("resolve", row["id"], "--outcome", "dismiss")
    assert fates(past, *order, "--dry-run") == ["would be done"]
    assert fates(past, *order, *WHY) == ["done"]
    assert fates(past, *order, *WHY) == ["done already"]
    needs = past.run("status", "--json").document["needs"]
    assert "conflict" not in {need["what"] for need in needs}
    (first,) = past.json("deliveries", "--verdict", "duplicate")["items"]
    refused = past.run("resolve", first["id"], "--outcome", "dismiss", *WHY)
    assert refused.status == 1
    assert past.run("resolve", row["id"], *WHY).status == 2


@pytest.mark.req("E5")
def test_all_messages_that_are_held_are_resolved_by_one_order(past: Past) -> None:
    assert fates(past, "resolve", "--all", "--outcome", "discard", *WHY) == ["done"]
    assert past.json("messages", "--state", "held")["items"] == []


@pytest.mark.req("F2")
def test_a_delivered_message_is_sent_again_and_what_waits_is_not_doubled(past: Past) -> None:
    rows = past.json("messages", "--state", "delivered")["items"]
    first = str(rows[0]["id"])
    assert fates(past, "redeliver", first, *WHY) == ["done"]
    assert fates(past, "redeliver", first, *WHY) == ["done already"]
    unknown = past.run("redeliver", "msg_x", *WHY)
    assert unknown.status == 1


@pytest.mark.req("F2")
def test_a_queued_job_is_cancelled_and_a_finished_one_is_not(past: Past) -> None:
    job = dead_job(past)
    refused = past.run("cancel", job, *WHY)
    assert (refused.status, "refused" in refused.out) == (1, True)
    past.json("retry", job, *WHY)
    assert fates(past, "cancel", job, *WHY) == ["done"]
    assert fates(past, "cancel", job, *WHY) == ["done already"]
    assert past.run("cancel", *WHY).status == 2


@pytest.mark.req("F2")
@pytest.mark.parametrize(
    "what", ["destination:erp", "source:contracts", "recipe:invoices", "step:checksum", "all"]
)
def test_a_part_is_paused_once_and_resumed(past: Past, what: str) -> None:
    assert fates(past, "pause", what, "--dry-run") == ["would be done"]
    assert fates(past, "pause", what, *WHY) == ["done"]
    assert fates(past, "pause", what, *WHY) == ["done already"]
    shown = past.run("status").out
    assert f"Paused: {what}, " in shown
    assert ", by Zoë: a test" in shown
    assert fates(past, "resume", what, *WHY) == ["done"]
    assert "Paused" not in past.run("status").out


def test_a_part_that_is_none_is_named(past: Past) -> None:
    wrong = past.run("pause", "erp", *WHY)
    assert (wrong.status, "write one of: destination:NAME" in wrong.err) == (2, True)
    unknown = past.run("pause", "destination:crm", *WHY)
    assert (unknown.status, "no destination of that name" in unknown.out) == (1, True)


@pytest.mark.req("F3")
def test_a_changed_recipe_is_run_again_after_a_dry_run_that_names_the_jobs(past: Past) -> None:
    order = ("reprocess", "contracts/F-good")
    assert fates(past, *order, "--dry-run") == ["done already"]
    path = past.folder / "laufzettel.toml"
    more = '{ name = "facts", use = "metadata" }, { name = "checksum"'
    path.write_text(path.read_text().replace('{ name = "checksum"', more))
    (dry,) = past.json(*order, "--dry-run")["items"]
    assert (dry["fate"], [told.split(":")[0] for told in dry["jobs"]]) == (
        "would be done",
        ["facts"],
    )
    assert len(past.json("jobs", "--name", "facts")["items"]) == 0
    assert fates(past, *order, *WHY) == ["done"]
    assert len(past.json("jobs", "--name", "facts")["items"]) == 1
    assert fates(past, *order, *WHY) == ["done already"]
    assert past.run("reprocess", *WHY).status == 2
    assert len(past.json("reprocess", "--source", "contracts", "--dry-run")["items"]) == 5


@pytest.mark.req("F2")
def test_what_was_ordered_while_nothing_ran_is_done_by_the_next_start(past: Past) -> None:
    held = message(past, "held")
    past.json("resolve", held, "--outcome", "resend", *WHY)
    config = load(past.folder / "laufzettel.toml", {"SECRET": r.SECRET})
    assert isinstance(config, Config)
    with r.running(config) as process:
        r.until(lambda: r.file_of(process, "F-silent").messages[held].phase == "held")
    document = past.json("show", held)
    (sent,) = document["versions"][0]["messages"]
    assert len(sent["attempts"]) == 2


@pytest.mark.req("F2")
@pytest.mark.parametrize(
    "order",
    [
        ("retry", "--all"),
        ("redeliver", "--all"),
        ("reprocess", "--all"),
        ("resolve", "--all"),
        ("discard", "--all"),
        ("cancel", "job_x"),
        ("pause", "all"),
        ("resume", "all"),
    ],
)
def test_every_order_needs_a_reason(past: Past, order: tuple[str, ...]) -> None:
    shown = past.run(*order)
    assert (shown.status, "an order needs a reason" in shown.err) == (2, True)


@pytest.mark.req("F3")
@pytest.mark.parametrize("command", ["retry", "redeliver", "reprocess", "replay"])
def test_the_help_tells_the_four_apart(past: Past, command: str) -> None:
    shown = past.run(command, "--help").out
    for line in ("dead work again", "same bytes again", "a new run", "rebuild, sends nothing"):
        assert line in shown


def test_an_order_prints_one_line_a_thing_and_a_sum(past: Past) -> None:
    job = dead_job(past)
    shown = past.run("retry", job, *WHY)
    assert shown.out.splitlines() == [f"done  {job}  download", "1 done"]
    assert json.loads(past.run("retry", job, *WHY, "--json").out)["items"][0]["id"] == job


@pytest.mark.req("F2")
@pytest.mark.req("E3")
def test_a_ping_is_signed_as_all_messages_and_shows_the_answer(original: Past) -> None:
    shown = original.run("ping", "erp")
    assert (shown.status, "erp: delivered in " in shown.out) == (0, True), shown
    assert ", answered 200" in shown.out
    assert original.json("ping", "erp")["response_body"] == '{"id": "4711"}'
    assert original.run("ping", "crm").status == 1

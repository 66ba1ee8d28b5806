"""Many messages sent again by the command line: previewed, ordered, followed, held and given up."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from app.config import Config, load
from app.store import tables as t
from tests import runtimes as r
from tests import slips
from tests.slips import Past

WHY = ("--reason", "they lost a day", "--operator", "Zoë", "--yes")
COUNT = 3  # two files that came through, and one that was told to be lost
OVER = {"finished", "stopped"}
DELIVERED = ("redeliver", "--destination", "erp", "--state", "delivered")


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Past]:
    with slips.past(tmp_path_factory.mktemp("past")) as made:
        yield made


@pytest.fixture
def past(original: Past, tmp_path: Path) -> Past:
    shutil.copytree(original.folder, tmp_path / "copy")
    return Past(tmp_path / "copy", original.config)


@pytest.mark.req("F2", "F5")
def test_a_dry_run_counts_and_changes_nothing(past: Past) -> None:
    preview = past.json(*DELIVERED, "--dry-run")
    count = COUNT
    assert (preview["matched"], preview["would"]) == (count, count)
    assert preview["counts"] == [{"destination": "erp", "state": "delivered", "count": count}]
    assert f"{count} delivered to erp" in past.run("redeliver", "--all", "--dry-run").out
    assert past.json("campaigns")["items"] == []


@pytest.mark.req("F2", "F5")
def test_an_order_waits_for_a_worker_and_is_carried_out_by_the_next_one(past: Past) -> None:
    count = COUNT
    made = past.json(*DELIVERED, "--rate", "1000", *WHY)
    assert (made["state"], made["total"]) == ("gathering", count)
    assert made["waits_for"] == ["a worker: none runs"]
    given_up = past.json(*DELIVERED, "--no-wait", *WHY)["id"]
    assert past.run("pause", f"campaign:{given_up}", *WHY).status == 0
    assert past.run("cancel", given_up, *WHY).status == 0
    config = load(past.folder / "laufzettel.toml", {"SECRET": r.SECRET})
    assert isinstance(config, Config)
    with r.running(config) as process:
        r.until(lambda: {row.state for row in r.rows(process.base.store, t.campaigns)} == OVER)
    told = past.run("campaigns", made["id"]).out
    assert f"{count} in all, {count} arrived" in told
    orders = past.json("audit")["items"]
    again = [order for order in orders if order["type"] == "MessageResolved"]
    assert len(again) == count
    assert {order["cause"]["id"] for order in again} == {made["id"]}
    assert {order["cause"]["reason"] for order in again} == {"they lost a day"}

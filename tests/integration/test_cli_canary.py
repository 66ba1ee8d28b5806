"""Redelivering many: stage by stage, at a rate, and no further than the first failure."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from app.cli.canary import stages
from tests import slips
from tests.slips import Past

WHY = ("--reason", "a test", "--operator", "Zoë", "--yes")


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Past]:
    with slips.past(tmp_path_factory.mktemp("past")) as made:
        yield made


@pytest.fixture
def past(original: Past, tmp_path: Path) -> Past:
    shutil.copytree(original.folder, tmp_path / "copy")
    return Past(tmp_path / "copy", original.config)


@pytest.mark.req("F2")
def test_the_stages_are_one_ten_a_hundred_and_the_rest_by_hundreds() -> None:
    assert list(stages(0)) == []
    assert list(stages(5)) == [1, 4]
    assert list(stages(300)) == [1, 10, 100, 100, 89]


@pytest.mark.req("F2")
def test_a_canary_that_does_not_arrive_leaves_the_rest_unsent(past: Past) -> None:
    # Nobody works on this store, so the first one never arrives.
    order = ("redeliver", "--destination", "erp", "--state", "delivered", "--canary")
    shown = past.run(*order, "--patience", "0.3", "--rate", "1000", *WHY, "--json")
    fates = [item["fate"] for item in shown.document["items"]]
    assert shown.status == 1
    assert fates[0] == "done"
    assert set(fates[1:]) == {"left"}
    left = [item["id"] for item in shown.document["items"][1:]]
    still = {row["id"] for row in past.json("messages", "--state", "delivered")["items"]}
    assert set(left) <= still


@pytest.mark.req("F2")
def test_a_dry_run_of_a_canary_sends_nothing(past: Past) -> None:
    order = ("redeliver", "--destination", "erp", "--state", "delivered", "--canary")
    items = past.json(*order, "--dry-run")["items"]
    assert {item["fate"] for item in items} == {"would be done"}

"""Cases E-11 and E-15: receivers that are away for hours and days, under a clock that is moved."""

from __future__ import annotations

import os
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from app.clock import SettableClock
from app.store import tables as t
from tests import runtimes as r
from tests.outboxes import idle, pile_up
from tests.virtual import Outbox, Seen

START = datetime(2026, 11, 30, tzinfo=UTC)
HOUR_S = 3600.0
DAY_S = 24 * HOUR_S
# The figures of docs/explanation/sending.md are those of LAUFZETTEL_OUTAGE=20001.
WAITING = int(os.environ.get("LAUFZETTEL_OUTAGE", "120"))


@contextmanager
def outbox(folder: Path, erp: str = "", recipe: str = "transforms = []") -> Iterator[Outbox]:
    clock = SettableClock(START)
    config = r.configured(
        folder, source="127.0.0.1:1", destination="http://127.0.0.1:2/", recipe=recipe, erp=erp
    )
    with idle(config, clock=clock) as base:
        made = Outbox(base, clock)
        try:
            yield made
        finally:
            made.close()


def messages(made: Outbox) -> list[Any]:
    return r.rows(made.base.store, t.messages)


def most_at_once(seen: list[Seen]) -> int:
    return max(Counter(each.step for each in seen).values())


def most_in_a_second(seen: list[Seen]) -> int:
    """The most that arrived within any second."""
    times = sorted(each.at_s for each in seen)
    start, most = 0, 0
    for end, at_s in enumerate(times):
        while times[start] <= at_s - 1:
            start += 1
        most = max(most, end - start + 1)
    return most


@pytest.mark.req("E4", "E6", "E10")
def test_e_11_after_an_hour_away_all_come_within_the_limits_and_new_ones_soon(
    tmp_path: Path,
) -> None:
    with outbox(tmp_path, 'concurrency = 8\nrate = "100/s"') as made:
        made.receiver.is_away = True
        pile_up(made.base.ledger, [f"old-{n}" for n in range(WAITING)])
        made.pass_until(HOUR_S)
        made.receiver.is_away = False
        pile_up(made.base.ledger, [f"new-{n}" for n in range(10)])
        while len(made.receiver.seen) < WAITING + 10:
            made.pass_until(made.clock.monotonic() + 5)
        seen = made.receiver.seen
    assert most_at_once(seen) <= 8
    assert most_in_a_second(seen) <= 100
    assert len({each.id for each in seen}) == len(seen) == WAITING + 10
    new = [place for place, each in enumerate(seen) if b'"file_id":"new-' in each.body]
    assert max(new) < WAITING / 2, "new messages wait behind all the old ones"


@pytest.mark.req("E4", "E6", "E7", "E10")
def test_e_15_after_three_days_away_each_message_arrives_once_and_in_order(tmp_path: Path) -> None:
    lines = 'order = "file"\nrate = "50/s"\nretry = { window = "5d" }'
    recipe = 'transforms = []\nversions = "all"'
    with outbox(tmp_path, f'{lines}\nsuperseded = "send"', recipe) as made:
        made.receiver.is_away = True
        for day in range(3):
            # The same files each day, in a new version.
            pile_up(made.base.ledger, [f"F-{n}" for n in range(WAITING // 3)], number=day + 1)
            made.pass_until((day + 1) * DAY_S)
        spent = sum(m.attempts for m in messages(made))
        assert made.receiver.tried == spent
        assert {m.state for m in messages(made)} <= {"pending", "waiting"}
        made.receiver.is_away = False
        came_back_s = made.clock.monotonic()
        while len(made.receiver.seen) < WAITING:
            made.pass_until(made.clock.monotonic() + 60)
        seen = made.receiver.seen
    # A probe each time that the breaker opens, at most one in eight minutes.
    assert spent <= 8 + 10 + 3 * DAY_S / (16 * 30)
    assert len({each.id for each in seen}) == len(seen) == WAITING
    assert (most_at_once(seen) <= 8, most_in_a_second(seen) <= 50) == (True, True)
    assert in_order_by_file(seen)
    took_s = seen[-1].at_s - came_back_s
    sys.stdout.write(f"{WAITING} messages, {spent} attempts in 3 d, all in {took_s:.1f} s\n")


@pytest.mark.req("E4", "E6", "E10")
def test_e_15_after_the_window_messages_are_dead_and_none_is_deleted(tmp_path: Path) -> None:
    with outbox(tmp_path, 'retry = { window = "1d" }') as made:
        made.receiver.is_away = True
        pile_up(made.base.ledger, [f"F-{n}" for n in range(20)])
        made.pass_until(HOUR_S)
        made.pass_until(2 * DAY_S)
        assert {m.state for m in messages(made)} <= {"dead", "waiting", "pending"}
        made.receiver.is_away = False
        made.pass_until(2 * DAY_S + HOUR_S)
        states = Counter(m.state for m in messages(made))
        seen = made.receiver.seen
    assert sum(states.values()) == 20
    assert set(states) <= {"dead", "delivered"}
    assert states["delivered"] == len(seen) == len({each.id for each in seen})


def in_order_by_file(seen: list[Seen]) -> bool:
    """Whether each file's versions came one after the other, no two at once."""
    last: dict[bytes, tuple[bytes, float]] = {}
    for each in sorted(seen, key=lambda one: one.at_s):
        body = each.body
        file_id = body.partition(b'"file_id":"')[2].partition(b'"')[0]
        version = body.partition(b'"version":"')[2].partition(b'"')[0]
        if file_id in last and not (version > last[file_id][0] and each.at_s > last[file_id][1]):
            return False
        last[file_id] = (version, each.at_s)
    return True

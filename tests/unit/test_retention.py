"""What may be forgotten, and when."""

from __future__ import annotations

from typing import get_args

import pytest

from domain.retention import Class, RetentionPolicy, due_before_ms, is_due

DAY_MS = 86_400_000
NOW_MS = 1_796_000_000_000
STANDARD = RetentionPolicy()


@pytest.mark.req("B6")
@pytest.mark.parametrize(
    "kind, days", [("payloads", 30), ("deliveries", 90), ("messages", 90), ("deleted", 30)]
)
def test_each_class_is_due_when_its_time_has_passed_and_not_before(kind: Class, days: int) -> None:
    since_ms = NOW_MS - days * DAY_MS
    assert is_due(kind, since_ms=since_ms, now_ms=NOW_MS, policy=STANDARD)
    assert not is_due(kind, since_ms=since_ms + 1, now_ms=NOW_MS, policy=STANDARD)


@pytest.mark.req("B6")
def test_what_is_kept_for_ever_is_never_due() -> None:
    assert not is_due("artifacts", since_ms=0, now_ms=NOW_MS, policy=STANDARD)
    assert due_before_ms("artifacts", now_ms=NOW_MS, policy=STANDARD) is None


def test_every_class_has_its_own_time() -> None:
    policy = RetentionPolicy(1, 2, 3, 4, 5)
    assert [policy.kept_s(kind) for kind in get_args(Class)] == [1, 2, 3, 4, 5]


def test_a_time_of_nothing_is_due_at_once() -> None:
    policy = RetentionPolicy(payloads_s=0)
    assert is_due("payloads", since_ms=NOW_MS, now_ms=NOW_MS, policy=policy)
    assert not is_due("payloads", since_ms=NOW_MS + 1, now_ms=NOW_MS, policy=policy)

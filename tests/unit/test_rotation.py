from __future__ import annotations

import pytest

from domain.rotation import Held, Retire, judged

DAY_MS = 86_400_000
NOW_MS = 100 * DAY_MS


def held(key_id: str, days_ago: float | None, reference: str = "env:S") -> Held:
    used_ms = None if days_ago is None else int(NOW_MS - days_ago * DAY_MS)
    return Held(key_id, reference, used_ms)


@pytest.mark.req("A15")
@pytest.mark.parametrize(
    "secrets, retire",
    [
        ([held("a", 1)], ["only"]),
        ([held("a", None)], ["only"]),
        ([held("a", 0), held("b", 8)], ["in-use", "safe"]),
        ([held("a", 0), held("b", 6)], ["in-use", "in-use"]),
        ([held("a", None), held("b", 30)], ["unused", "in-use"]),
        ([held("a", 9), held("b", 30)], ["in-use", "safe"]),
        ([held("a", 9), held("b", 9)], ["in-use", "in-use"]),
        ([held("a", 0), held("b", 8), held("c", 50, "")], ["in-use", "safe", "gone"]),
        ([held("b", 8), held("c", 0, "")], ["only", "gone"]),
    ],
)
def test_a_secret_is_safe_to_give_up_once_it_is_quiet_and_another_took_over(
    secrets: list[Held], retire: list[Retire]
) -> None:
    standings = judged(secrets, now_ms=NOW_MS, quiet_ms=7 * DAY_MS)
    assert [standing.retire for standing in standings] == retire
    assert [standing.held for standing in standings] == secrets
    assert all(standing.why for standing in standings)


def test_at_most_all_but_one_secret_is_safe_to_give_up() -> None:
    many = [held(str(n), days) for n, days in enumerate((40, 30, 20))]
    standings = judged(many, now_ms=NOW_MS, quiet_ms=0)
    assert [standing.retire for standing in standings] == ["safe", "safe", "in-use"]

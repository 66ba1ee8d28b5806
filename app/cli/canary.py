"""Many messages again, carefully: one, ten, a hundred, then the rest, stopped by a failure."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Annotated

import typer

from app.cli.client import Api, segment
from app.cli.orders import Desk, Fates, Item, Wish, be_sure, done, progress
from app.clock import Clock, SystemClock

CanaryOption = Annotated[
    bool, typer.Option("--canary", help="1, 10, 100, then the rest; the first failure ends it.")
]
RateOption = Annotated[
    float,
    typer.Option("--rate", min=0.01, max=10_000, help="With --canary: so many a second at most."),
]
PatienceOption = Annotated[
    float,
    typer.Option("--patience", min=0.1, max=604_800, help="Seconds to wait for each stage's end."),
]
_STAGES = (1, 10, 100)
_LOOK_AGAIN_S = 0.2
_GOOD = frozenset({"delivered", "skipped"})
_UNDER_WAY = frozenset({"pending", "sending"})


@dataclass(frozen=True, slots=True)
class Pace:
    """How fast, and how long a stage may take to show its end."""

    rate_per_s: float = 10.0
    patience_s: float = 60.0
    clock: Clock = SystemClock()  # noqa: RUF009 - it has no state


def stages(count: int) -> Iterator[int]:
    """The sizes of the stages of so many; each is looked at before the next begins."""
    sizes = iter(_STAGES)
    while count > 0:
        size = min(next(sizes, _STAGES[-1]), count)
        yield size
        count -= size


def carry_out_carefully(desk: Desk, wishes: Sequence[Wish], pace: Pace) -> Fates:
    """Do what is wanted stage by stage; what a failure leaves over is told by its ids."""
    rest = [wish for wish in wishes if wish.item.fate == "would be done"]
    settled = [wish.item for wish in wishes if wish.item.fate != "would be done"]
    if desk.is_dry or not rest:
        return Fates([wish.item for wish in wishes])
    be_sure(desk, len(rest))
    with progress(len(rest)) as advance:
        for size in stages(len(rest)):
            now, rest = rest[:size], rest[size:]
            items = []
            for wish in now:
                _wait(pace, 1 / pace.rate_per_s)
                items.append(done(desk.api, wish))
                advance()
            settled += items
            if why := _failure(desk.api, items, pace):
                left = [replace(wish.item, fate="left", why="") for wish in rest]
                note = f"Stopped: {why}. What is left goes on when it is named by its ids."
                return Fates([*settled, *left], notes=(note,), is_refused=True)
    return Fates(settled)


def _failure(api: Api, items: Sequence[Item], pace: Pace) -> str:
    """Why this stage is no success; "" if all of it arrived."""
    open_ids = [item.id for item in items if item.fate == "done"]
    ends_s = pace.clock.monotonic() + pace.patience_s
    while open_ids:
        row = api.get(f"/messages/{segment(open_ids[0])}")
        state = str(row["state"])
        if state in _GOOD:
            open_ids.pop(0)
        elif state not in _UNDER_WAY:
            return f"{row['id']} is {state}: {row['error'] or 'it did not arrive'}"
        elif pace.clock.monotonic() >= ends_s:
            return f"{row['id']} is still {state} after {pace.patience_s:g} s"
        else:
            _wait(pace, _LOOK_AGAIN_S)
    return ""


def _wait(pace: Pace, seconds: float) -> None:
    pace.clock.wait(threading.Event(), seconds)

"""A campaign: many messages sent again by one order, carefully. How many may go, when it ends.

Careful is one, then ten, then a hundred, then the rest: each stage begins once all before it have
arrived. Too many that do not arrive hold it up by itself.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import accumulate

_STAGES = tuple(accumulate((1, 10, 100)))
# What a campaign takes of a destination at most: live messages have the rest.
_SHARE_OF_SLOTS = 4
_SHARE_OF_RATE = 2


@dataclass(frozen=True, slots=True)
class Pace:
    """How fast and how carefully; so many failures hold it up."""

    rate_per_s: float = 10.0
    is_careful: bool = True
    most_failures: int = 1


@dataclass(frozen=True, slots=True)
class Tally:
    """What became of the messages so far: open ones have not been ordered yet."""

    open: int = 0
    under_way: int = 0
    arrived: int = 0
    failed: int = 0
    refused: int = 0
    left: int = 0

    @property
    def ordered(self) -> int:
        """How many were sent again."""
        return self.under_way + self.arrived + self.failed + self.left

    @property
    def total(self) -> int:
        """All of them."""
        return self.open + self.ordered + self.refused

    @property
    def is_through(self) -> bool:
        """Whether nothing more comes of it."""
        return not self.open and not self.under_way


def is_held_up(pace: Pace, tally: Tally, *, forgiven: int) -> bool:
    """Whether too many have failed since it went on last."""
    return not tally.is_through and tally.failed - forgiven >= pace.most_failures


def may_go(pace: Pace, tally: Tally, *, restarted: int) -> int:
    """How many more may be ordered before the stage is looked at.

    ``restarted`` is how many had been ordered when it went on last: it is careful anew then.
    """
    if not pace.is_careful:
        return tally.open
    sent = tally.ordered - restarted
    if tally.under_way and sent in _STAGES:
        return 0
    end = next((end for end in _STAGES if sent < end), None)
    return tally.open if end is None else min(end - sent, tally.open)


def stage(pace: Pace, tally: Tally, *, restarted: int) -> int:
    """Which stage it is in, from 1; the rest is the last."""
    if not pace.is_careful:
        return len(_STAGES) + 1
    sent = tally.ordered - restarted
    return 1 + sum(sent >= end for end in _STAGES)


def window(concurrency: int, *, is_busy: bool) -> int:
    """How many of it may be under way at a destination; one where live messages wait there."""
    return 1 if is_busy else max(1, concurrency // _SHARE_OF_SLOTS)


def rate_per_s(pace: Pace, limit_per_s: float | None) -> float:
    """How many may go in a second to a destination with such a limit."""
    return min(pace.rate_per_s, limit_per_s / _SHARE_OF_RATE) if limit_per_s else pace.rate_per_s

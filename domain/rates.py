"""A rate as a value: so many beginnings in any second, and no more. Nothing is saved up.

Beginnings close to each other are kept as one entry under the time of the last of them, so a rate
of thousands is as short a text as one of a few; an entry counts until its last one is old enough.
"""

from __future__ import annotations

import json
from dataclasses import dataclass

# Into so many slices the span of a rate is cut.
_SLICES = 50


@dataclass(frozen=True, slots=True)
class Rate:
    """At most ``per_s`` in any second; below one a second, one in as many seconds."""

    per_s: float
    began: tuple[tuple[int, int], ...] = ()

    @property
    def most(self) -> int:
        """How many may begin within ``span_ms``."""
        return max(int(self.per_s), 1)

    @property
    def span_ms(self) -> float:
        """The length of time that is looked at."""
        return self.most / self.per_s * 1000


def load(per_s: float, text: str) -> Rate:
    """The inverse of ``dump``, at the rate that holds now; "" is one that nothing began under."""
    return Rate(per_s, tuple((at, count) for at, count in json.loads(text)) if text else ())


def dump(rate: Rate) -> str:
    """When work began lately, as text for a table."""
    return json.dumps([list(entry) for entry in rate.began], separators=(",", ":"))


def free(rate: Rate, now_ms: int) -> int:
    """How many may begin now."""
    return max(rate.most - sum(count for _, count in _lately(rate, now_ms)), 0)


def begun(rate: Rate, now_ms: int) -> Rate:
    """The rate after one more has begun; only where one is free."""
    entries = _lately(rate, now_ms)
    at_ms, count = entries[-1] if entries else (0, 0)
    if entries and _slice(rate, at_ms) == _slice(rate, now_ms):
        entries = (*entries[:-1], (max(at_ms, now_ms), count + 1))
    else:
        entries = (*entries, (now_ms, 1))
    return Rate(rate.per_s, entries)


def wait_ms(rate: Rate, now_ms: int) -> float:
    """How long until one may begin; 0 where one may now."""
    left = rate.most
    for at_ms, count in reversed(_lately(rate, now_ms)):
        left -= count
        if left <= 0:
            return max(at_ms + rate.span_ms + 1 - now_ms, 0)
    return 0


def _slice(rate: Rate, at_ms: int) -> int:
    return int(at_ms * _SLICES / rate.span_ms)


def _lately(rate: Rate, now_ms: int) -> tuple[tuple[int, int], ...]:
    # Milliseconds are cut off, so what began in the span's very first one may be younger than it.
    # What lies far ahead was written by a clock that has been put right since.
    span_ms = rate.span_ms
    return tuple(e for e in rate.began if now_ms - span_ms <= e[0] <= now_ms + span_ms)

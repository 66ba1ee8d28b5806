"""What costs much to count is counted once for all who look within a few seconds."""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Any

from app.clock import Clock

_KEPT_S = 5.0
# What costs less is counted anew each time, so that nothing shown is older than it need be.
_COSTLY_S = 0.1
_MOST = 100


@dataclass(frozen=True, slots=True)
class _Seen:
    at_s: float
    took_s: float
    values: dict[str, Any]


class Glances:
    """Remembers what was costly to count."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._seen: dict[Hashable, _Seen] = {}

    def of(self, key: Hashable, count: Callable[[], dict[str, Any]]) -> dict[str, Any]:
        """What ``count`` gives, or gave lately if that took long."""
        # Whoever comes while it is counted waits for that, and does not count beside it.
        with self._lock:
            began_s = self._clock.monotonic()
            seen = self._seen.get(key)
            is_fresh = seen is not None and began_s - seen.at_s < _KEPT_S
            if seen is not None and is_fresh and seen.took_s > _COSTLY_S:
                return seen.values
            values = count()
            now_s = self._clock.monotonic()
            if len(self._seen) >= _MOST:
                self._seen.clear()
            self._seen[key] = _Seen(now_s, now_s - began_s, values)
            return values

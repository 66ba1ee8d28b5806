"""Whether work of a scope may begin now: pauses, waits, slots, breakers, rates."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Mapping
from datetime import UTC, datetime

from app.clock import Clock
from app.store.queue import Picture
from domain.breaker import allows, load, word
from jobs.runner.terms import STEP_TERMS, Terms


class Rate:
    """So many beginnings in any second, and no more: what was saved up is never made up for."""

    def __init__(self, per_s: float, clock: Clock) -> None:
        self._most = max(int(per_s), 1)
        self._span_s = self._most / per_s
        self._began: deque[float] = deque()
        self._clock = clock
        self._lock = threading.Lock()

    def take(self) -> bool:
        """Begin one, if one may begin."""
        with self._lock:
            if self._free() < 1:
                return False
            self._began.append(self._clock.monotonic())
            return True

    def free(self) -> int:
        """How many may begin now."""
        with self._lock:
            return self._free()

    def wait_s(self) -> float:
        """How long until one may begin."""
        with self._lock:
            if self._free():
                return 0.0
            return self._began[0] + self._span_s - self._clock.monotonic()

    def _free(self) -> int:
        past_s = self._clock.monotonic() - self._span_s
        while self._began and self._began[0] <= past_s:
            self._began.popleft()
        return self._most - len(self._began)


class Gate:
    """Decides how many pieces of a scope's work may begin."""

    def __init__(self, terms: Mapping[str, Terms], clock: Clock) -> None:
        self._terms = terms
        self._rates = {
            scope: Rate(each.rate_per_s, clock) for scope, each in terms.items() if each.rate_per_s
        }

    @property
    def scopes(self) -> tuple[str, ...]:
        """Every source and destination."""
        return tuple(self._terms)

    def terms(self, scope: str) -> Terms:
        """The terms of a scope; steps have none of their own."""
        return self._terms.get(scope, STEP_TERMS)

    def free(self, picture: Picture, scope: str, now_ms: int) -> int:
        """How many more may begin; below zero if more run than may, or if nothing may."""
        running = picture.running.get(scope, 0)
        if not picture.paused.isdisjoint(("all", scope)) or scope in picture.waits:
            return -max(running, 1)
        terms = self.terms(scope)
        most = terms.concurrency
        if terms.breaker is not None:
            now = datetime.fromtimestamp(now_ms / 1000, UTC)
            most = min(most, allows(load(terms.breaker, picture.breakers.get(scope, "")), now))
        return most - running

    def obstacle(self, picture: Picture, scope: str, now_ms: int) -> str:
        """What keeps all work of a scope from beginning now, in a word; "" for nothing."""
        if not picture.paused.isdisjoint(("all", scope)):
            return "paused"
        if scope in picture.waits:
            return "asked to wait"
        policy = self.terms(scope).breaker
        if policy is None:
            return ""
        now = datetime.fromtimestamp(now_ms / 1000, UTC)
        state = word(load(policy, picture.breakers.get(scope, "")), now)
        return "" if state == "closed" else "cut off"

    def tokens(self, scope: str) -> int:
        """How many may begin by the scope's rate."""
        rate = self._rates.get(scope)
        return self.terms(scope).concurrency if rate is None else rate.free()

    def take_token(self, scope: str) -> bool:
        """Use up one of the scope's rate, if it has one left."""
        rate = self._rates.get(scope)
        return rate is None or rate.take()

    def wait_s(self, *, longest_s: float) -> float:
        """How long until a rate that is used up lets another begin; at most so long."""
        waits_s = [wait_s for rate in self._rates.values() if (wait_s := rate.wait_s())]
        return min(waits_s, default=longest_s)

"""Whether work of a scope may begin now: pauses, waits, slots, breakers, rates."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime

from app.store.queue import Picture
from domain import rates
from domain.breaker import allows, load, word
from jobs.runner.terms import STEP_TERMS, Terms


class Gate:
    """Decides how many pieces of a scope's work may begin."""

    def __init__(self, terms: Mapping[str, Terms]) -> None:
        self._terms = terms

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
        return self.most(picture, scope, now_ms) - running

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

    def most(self, picture: Picture, scope: str, now_ms: int) -> int:
        """How many of a scope may run at once, as long as nothing else is in the way."""
        terms = self.terms(scope)
        if terms.breaker is None:
            return terms.concurrency
        now = datetime.fromtimestamp(now_ms / 1000, UTC)
        circuit = load(terms.breaker, picture.breakers.get(scope, ""))
        return min(terms.concurrency, allows(circuit, now))

    def tokens(self, picture: Picture, scope: str, now_ms: int) -> int:
        """How many may begin by the scope's rate."""
        terms = self.terms(scope)
        if terms.rate_per_s is None:
            return terms.concurrency
        return rates.free(rates.load(terms.rate_per_s, picture.rates.get(scope, "")), now_ms)

    def wait_s(self, picture: Picture, now_ms: int, *, longest_s: float) -> float:
        """How long until a rate that is used up lets another begin; at most so long."""
        waits_s = [
            rates.wait_ms(rates.load(terms.rate_per_s, picture.rates[scope]), now_ms) / 1000
            for scope, terms in self._terms.items()
            if terms.rate_per_s is not None and picture.rates.get(scope)
        ]
        return min((wait_s for wait_s in waits_s if wait_s), default=longest_s)

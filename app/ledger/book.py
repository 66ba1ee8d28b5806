"""What the Ledger knows beside the store: the installation's key and today's configuration."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from domain.commands import Context, Destination
from domain.recipes import Recipe


@dataclass(slots=True)
class Book:
    """The configuration as decisions see it; ``recipes`` grows with each that is defined."""

    key: bytes
    incarnation: int
    configured: tuple[Recipe, ...] = ()
    destinations: Mapping[str, Destination] = field(default_factory=dict)
    base_url: str = ""
    recipes: dict[str, Recipe] = field(default_factory=dict)

    def context(
        self, *, now_ms: int, salt: bytes, jitter: float, in_flight: frozenset[str]
    ) -> Context:
        """What one decision may look at."""
        return Context(
            now_ms=now_ms,
            key=self.key,
            recipes=self.recipes,
            configured=self.configured,
            destinations=self.destinations,
            base_url=self.base_url,
            in_flight=in_flight,
            salt=salt,
            jitter=jitter,
        )

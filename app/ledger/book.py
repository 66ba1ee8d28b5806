"""What the Ledger knows beside the store: the installation's key and today's configuration."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from app.store import installation
from app.store.engine import Connection
from domain.commands import Context, Destination
from domain.recipes import Recipe, from_canonical


@dataclass(slots=True)
class Book:
    """The configuration as decisions see it; ``recipes`` grows with each that is defined.

    Another process may define recipes too: ``learn`` before a decision about a file.
    """

    key: bytes
    incarnation: int
    configured: tuple[Recipe, ...] = ()
    destinations: Mapping[str, Destination] = field(default_factory=dict)
    base_url: str = ""
    recipes: dict[str, Recipe] = field(default_factory=dict)

    def learn(self, connection: Connection, digests: Iterable[str]) -> None:
        """Know these recipes; raises ``LookupError`` for one that was never defined.

        Work under a recipe that is not known would look like work that nobody wants.
        """
        missing = {digest for digest in digests if digest} - self.recipes.keys()
        if not missing:
            return
        forms = installation.pinned_recipes(connection)
        self.recipes.update({digest: from_canonical(form) for digest, form in forms.items()})
        if unknown := missing - self.recipes.keys():
            raise LookupError(f"no recipe was ever defined with the digest {min(unknown)}")

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

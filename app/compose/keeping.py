"""What a command needs that works on the whole store beside, or instead of, a running process."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from app.artifacts import Blobs, open_blobs
from app.clock import Clock, SystemClock, SystemDice
from app.compose.preparing import book_of, identity_of, ready_recipes
from app.config import Config
from app.ledger import Ledger
from app.store.engine import Store
from domain.recipes import Recipe
from jobs.sweep import Digests, Parts


@dataclass(frozen=True, slots=True)
class Keeping:
    """An opened store with its Ledger and its blobs."""

    config: Config
    store: Store
    ledger: Ledger
    blobs: Blobs
    clock: Clock

    @property
    def sweep_parts(self) -> Parts:
        """What a sweep works with."""
        digests = Digests(self.ledger, self.store)
        return Parts(self.config, self.store, self.ledger, self.blobs, self.clock, digests)


@contextmanager
def keeping(config: Config, store: Store, clock: Clock | None = None) -> Iterator[Keeping]:
    """A Ledger over an opened store whose schema is this program's."""
    clock, dice = clock or SystemClock(), SystemDice()
    recipes = tuple(each for each in ready_recipes(config) if isinstance(each, Recipe))
    identity = identity_of(store, clock, dice)
    ledger = Ledger(store, book_of(config, store, identity, recipes), clock, dice)
    ledger.start()
    try:
        yield Keeping(config, store, ledger, open_blobs(config.installation.artifacts_url), clock)
    finally:
        ledger.close()

"""Several processes of different configurations write to one store."""

from __future__ import annotations

from contextlib import ExitStack

import pytest

from app.clock import SystemClock, SystemDice
from app.ledger import Ledger
from app.ledger.book import Book
from app.ledger.requests import Control
from app.store import projections
from app.store.engine import Store
from domain.commands import Cause
from domain.installation import RecipeDefined
from domain.recipes import Recipe
from tests.runtimes import version_accepted

OLD, NEW = Recipe("old", ("contracts",)), Recipe("new", ("contracts",))


@pytest.mark.req("C7")
@pytest.mark.req("F1")
def test_a_recipe_that_another_process_defined_meanwhile_counts_here_too(
    store: Store, side: str
) -> None:
    if side == "sqlite":
        pytest.skip("there one process writes")
    with ExitStack() as kept:

        def ledger(recipe: Recipe) -> Ledger:
            made = Ledger(store, Book(b"k" * 32, 1, (recipe,)), SystemClock(), SystemDice())
            made.start()
            kept.callback(made.close)
            return made

        def define(made: Ledger, recipe: Recipe) -> None:
            defined = RecipeDefined(at_ms=0, digest=recipe.digest, form=recipe.canonical.decode())
            made.submit(Control(defined, Cause("system"))).result(10)

        first, second = ledger(OLD), ledger(NEW)
        define(first, OLD)
        define(second, NEW)
        third = ledger(NEW)
        define(third, NEW)  # it is pinned already
        accepted = [
            version_accepted(second, "http://x/1"),
            version_accepted(first, "http://x/1", event_id="again"),
            version_accepted(third, "http://x/2", file_id="F-2"),
        ]
        for made, accept in zip((second, first, third), accepted, strict=True):
            made.submit(accept).result(10)
        with store.read() as connection:
            files = projections.load(connection, [accept.stream for accept in accepted])
        assert [file.versions["1"].phase for file in files.values()] == ["received"] * 2
        assert {file.versions["1"].recipe for file in files.values()} == {NEW.digest}

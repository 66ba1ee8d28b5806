"""Before a start: whether this store can be run with the configuration, and what is new."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from app.clock import Clock, Dice
from app.config import Config, Problem, changed_keys
from app.config import Destination as Configured
from app.ledger import Ledger
from app.ledger.book import Book
from app.ledger.requests import Control
from app.store import copying, installation, locks, queue
from app.store.engine import Store
from app.store.installation import Identity
from domain.commands import Cause, Destination
from domain.installation import ConfigurationChanged, InstallationCreated, RecipeDefined
from domain.recipes import Recipe, Step, from_canonical
from jobs.steps import pinned

_SYSTEM = Cause("system", "start")


def ready_recipes(config: Config) -> tuple[Recipe, ...] | tuple[Problem, ...]:
    """The configured recipes with their steps as they are pinned; or what is wrong with them."""
    problems: list[Problem] = []
    recipes = []
    for configured in config.recipes:
        recipe = configured.recipe
        steps = [pinned(step) for step in recipe.steps]
        for place, step in enumerate(steps):
            if isinstance(step, str):
                key = f"recipes.{recipe.name}.transforms[{place}]"
                problems.append(problem_of_step(config, key, step))
        ready = tuple(step for step in steps if isinstance(step, Step))
        recipes.append(replace(recipe, steps=ready))
    return tuple(problems) if problems else tuple(recipes)


def problem_of_step(config: Config, key: str, words: str) -> Problem:
    """What is wrong with a step, in the words of whoever knows the steps, with its mend."""
    what, _, mend = words.partition("; ")
    return Problem(config.path.name, key, what, mend or "mend it there")


def identity_of(store: Store, clock: Clock, dice: Dice) -> Identity:
    """The installation of this store, made up at its first start."""
    with store.writing.begin() as connection:
        found = installation.find(connection)
        if found is None:
            made = Identity(dice.salt().hex(), dice.salt() + dice.salt(), 1)
            found = installation.create(connection, made, _ms(clock))
    return found


def book_of(config: Config, store: Store, identity: Identity, recipes: tuple[Recipe, ...]) -> Book:
    """What decisions look at: today's configuration, and every recipe that was ever pinned."""
    with store.read() as connection:
        forms = installation.pinned_recipes(connection)
    known = {digest: from_canonical(form) for digest, form in forms.items()}
    return Book(
        key=identity.key,
        incarnation=identity.incarnation,
        configured=recipes,
        destinations={
            name: _destination(name, place)
            for place in config.destinations
            for name in (place.name, *place.was)
        },
        base_url=config.installation.base_url,
        recipes=known,
    )


def _destination(name: str, place: Configured) -> Destination:
    return Destination(
        name=name,
        types=place.types,
        format="mapped" if place.format == "body" else place.format,
        body=place.body,
        superseded=place.superseded,
        unclear=place.unclear,
    )


def unrestored(config: Config, store: Store) -> tuple[Problem, ...]:
    """That a restore into this store died before all of it was done: erased files may be back."""
    with store.read() as connection:
        if not copying.open_restore(connection):
            return ()
    what = "holds a restore that has not ended, so that what was erased since may be back"
    mend = "give the command again: laufzettel restore FILE, with the same file"
    return (Problem(config.path.name, "laufzettel.database", what, mend),)


def orphans(config: Config, store: Store) -> tuple[Problem, ...]:
    """The parts that unfinished work needs and that the configuration does not name any more."""
    with store.read() as connection:
        pending = queue.pending(connection)
        forms = installation.pinned_recipes(connection)
    names = {digest: from_canonical(form).name for digest, form in forms.items()}
    lost: dict[tuple[str, str], int] = {}
    known = dict(_names(config))
    for (part, name), count in pending.items():
        shown = names.get(name, name) if part == "recipes" else name
        if shown not in known[part]:
            lost[part, shown] = lost.get((part, shown), 0) + count
    return tuple(
        Problem(
            config.path.name,
            f"{part}.{name}",
            f"is gone, but {_unfinished(count)}",
            f'bring it back until they are done or discarded, or rename it by was = ["{name}"]',
        )
        for (part, name), count in sorted(lost.items())
    )


def _unfinished(count: int) -> str:
    if count == 1:
        return "1 unfinished job or message needs it"
    return f"{count} unfinished jobs or messages need it"


def _names(config: Config) -> Iterator[tuple[str, frozenset[str]]]:
    yield "sources", frozenset(n for s in config.sources for n in (s.name, *s.was))
    yield "destinations", frozenset(n for d in config.destinations for n in (d.name, *d.was))
    yield "recipes", frozenset(n for r in config.recipes for n in (r.recipe.name, *r.was))


def record_start(config: Config, store: Store, ledger: Ledger, clock: Clock) -> None:
    """Append what this start brings: the installation, recipes not pinned yet, changed keys.

    Of several processes that start at once one does it, and the others find it done.
    """
    with locks.alone(store, "start"):
        _record_start(config, store, ledger, clock)


def _record_start(config: Config, store: Store, ledger: Ledger, clock: Clock) -> None:
    with store.read() as connection:
        before = installation.last_configuration(connection)
        identity = installation.find(connection)
    assert identity is not None  # noqa: S101 - a start makes it first
    at_ms = _ms(clock)
    events: list[Control] = []
    if before is None:
        created = InstallationCreated(at_ms=at_ms, installation=identity.name)
        events.append(Control(created, _SYSTEM))
    for recipe in ledger.book.configured:
        form = recipe.canonical.decode()
        defined = RecipeDefined(at_ms=at_ms, digest=recipe.digest, form=form)
        events.append(Control(defined, _SYSTEM))
    prints = dict(config.fingerprints)
    if before is None or dict(before) != prints:
        keys = () if before is None else changed_keys(before, prints)
        changed = ConfigurationChanged(at_ms=at_ms, digest=config.digest, keys=keys)
        events.append(Control(changed, _SYSTEM))
    ledger.conclude(
        tuple(events),
        lambda connection, now_ms, _: installation.keep_configuration(connection, prints, now_ms),
    ).result()


def _ms(clock: Clock) -> int:
    return int(clock.now().timestamp() * 1000)

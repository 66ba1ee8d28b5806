"""The web side over an opened store inside a command: no server, no worker, one local token."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from app.artifacts import BlobsError, open_blobs
from app.clock import SystemClock, SystemDice
from app.compose import problem_of, user_agent
from app.compose.pinging import pinger
from app.compose.preparing import book_of, orphans, ready_recipes, record_start
from app.config import Config, Problem
from app.ledger import Ledger
from app.store import installation, migrate
from app.store.engine import Store, open_store
from app.store.errors import SchemaError, StoreOwnedError, StoreUnavailableError
from app.web import Outside, create_web
from domain.recipes import Recipe
from jobs.outbound import Outbound


@dataclass(frozen=True, slots=True)
class Owned:
    """Another process has the store: it is the one to ask."""


@dataclass(frozen=True, slots=True)
class Desk:
    """The application, the token that it takes from this process, and what ends it."""

    web: Any
    token: str
    close: Callable[[], None]


def open_desk(config: Config, *, writes: bool = False) -> Desk | Owned | tuple[Problem, ...]:
    """Open the store for one command; problems where there is none that can be used.

    A command that ``writes`` is a start like any other: the configuration it decides by is on the
    log before its first decision.
    """
    recipes = ready_recipes(config)
    if problems := tuple(each for each in recipes if isinstance(each, Problem)):
        return problems
    path = config.installation.database_path
    if path is not None and not path.exists():
        return (_no_store(config),)
    try:
        store = open_store(config.installation.database_url)
    except StoreOwnedError:
        return Owned()
    ready = tuple(each for each in recipes if isinstance(each, Recipe))
    try:
        desk = _desk(config, store, ready, writes=writes)
    except (SchemaError, StoreUnavailableError) as error:
        store.close()
        return (problem_of(config, "database", error),)
    except BlobsError as error:
        store.close()
        mend = "mend the address, or the rights there"
        return (Problem(config.path.name, "laufzettel.artifacts", str(error), mend),)
    except BaseException:
        store.close()
        raise
    if not isinstance(desk, Desk):
        store.close()
    return desk


def _desk(
    config: Config, store: Store, recipes: tuple[Recipe, ...], *, writes: bool
) -> Desk | tuple[Problem, ...]:
    migrate.check(store)
    with store.read() as connection:
        identity = installation.find(connection)
    if identity is None:
        return (_no_store(config),)
    if writes and (lost := orphans(config, store)):
        return lost
    clock, dice = SystemClock(), SystemDice()
    book = book_of(config, store, identity, recipes)
    if not writes:
        # Nothing is pinned for a dry run, yet it decides as if today's recipes were.
        today = {recipe.digest: recipe for recipe in recipes}
        book = replace(book, recipes={**today, **book.recipes})
    ledger = Ledger(store, book, clock, dice)
    token = dice.salt().hex()
    blobs = open_blobs(config.installation.artifacts_url)
    ledger.start()
    if writes:
        record_start(config, store, ledger, clock)
    http = Outbound(clock=clock, user_agent=user_agent())
    web = create_web(
        config=config,
        store=store,
        ledger=ledger,
        blobs=blobs,
        clock=clock,
        outside=Outside(
            dice=dice,
            local_token=token,
            ping=pinger(config, http=http, blobs=blobs, clock=clock),
        ),
    )

    def close() -> None:
        http.close()
        ledger.close()
        store.close()

    return Desk(web, token, close)


def _no_store(config: Config) -> Problem:
    mend = "make one with: laufzettel run"
    return Problem(config.path.name, "laufzettel.database", "there is no store there yet", mend)

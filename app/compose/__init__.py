"""Puts a process together: web, worker, or both in one, and takes it apart in the right order."""

from __future__ import annotations

import os
import socket
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from typing import cast

from app.artifacts import Blobs, Scratch, open_blobs, open_scratch, scratch_root
from app.clock import Clock, Dice, SystemClock, SystemDice
from app.compose import serving
from app.compose.preparing import book_of, identity_of, orphans, ready_recipes, record_start
from app.config import Config, Problem
from app.ledger import Ledger
from app.store import migrate
from app.store.engine import Store, open_store
from app.store.errors import SchemaError, StoreError, StoreOwnedError
from app.telemetry import Metrics, log
from domain.recipes import Recipe
from jobs.broker import open_broker
from jobs.worker import Parts, Worker

GRACE_S = 30.0


@dataclass(frozen=True, slots=True)
class Refused:
    """This start would do harm or cannot succeed: every reason, each with its mend."""

    problems: tuple[Problem, ...]


@dataclass(frozen=True, slots=True)
class Base:
    """What both halves of a process stand on."""

    config: Config
    store: Store
    ledger: Ledger
    blobs: Blobs
    scratch: Scratch
    clock: Clock
    metrics: Metrics


class Process:
    """Everything in one process. ``stop`` may be called once ``start`` has returned or failed."""

    def __init__(self, base: Base, worker: Worker, web: serving.Serving | None) -> None:
        self.base = base
        self.worker = worker
        self.web = web

    def start(self) -> None:
        """Open for work; raises ``StoreError`` or what the web half raises if it cannot."""
        self.base.ledger.start()
        record_start(self.base.config, self.base.store, self.base.ledger, self.base.clock)
        self.worker.start()
        if self.web is not None:
            self.web.start()
        log.info("process.started", pid=os.getpid())

    def stop(self, *, grace_s: float = GRACE_S) -> None:
        """Take nothing more, finish or hand back what runs, close; nothing accepted is lost."""
        began_s = self.base.clock.monotonic()
        if self.web is not None:
            self.web.stop(grace_s=grace_s)
        left_s = grace_s - (self.base.clock.monotonic() - began_s)
        self.worker.stop(grace_s=max(left_s, 0.0))
        self.base.ledger.close()
        self.base.scratch.close()
        self.base.store.close()
        log.info("process.stopped", pid=os.getpid())


def compose_run(
    config: Config,
    *,
    clock: Clock | None = None,
    dice: Dice | None = None,
    has_web: bool = True,
) -> Process | Refused:
    """Web, worker and scheduler in one process; nothing runs before ``start``.

    Without ``has_web`` nobody is listened to: facts come through the Ledger alone.
    """
    clock, dice = clock or SystemClock(), dice or SystemDice()
    recipes = ready_recipes(config)
    if any(isinstance(each, Problem) for each in recipes):
        return Refused(cast("tuple[Problem, ...]", recipes))
    place = config.installation
    try:
        store = open_store(place.database_url)
    except StoreOwnedError as error:
        return Refused((problem_of(config, "database", error),))
    try:
        migrate.upgrade(store)
        if refused := orphans(config, store):
            store.close()
            return Refused(refused)
        base = _base(config, store, cast("tuple[Recipe, ...]", recipes), (clock, dice))
    except SchemaError as error:
        store.close()
        return Refused((problem_of(config, "database", error),))
    except BaseException:
        store.close()
        raise
    return Process(base, _worker(base), _web(base) if has_web else None)


def _worker(base: Base) -> Worker:
    return Worker(
        Parts(
            config=base.config,
            store=base.store,
            ledger=base.ledger,
            blobs=base.blobs,
            scratch=base.scratch,
            broker=open_broker(base.config.installation.broker.reveal()),
            clock=base.clock,
            metrics=base.metrics,
            owner=f"{socket.gethostname()}:{os.getpid()}",
            user_agent=user_agent(),
        )
    )


def _web(base: Base) -> serving.Serving:
    return serving.Serving(
        serving.Parts(
            config=base.config,
            store=base.store,
            ledger=base.ledger,
            blobs=base.blobs,
            clock=base.clock,
            metrics=base.metrics,
            user_agent=user_agent(),
            local_token=SystemDice().salt().hex(),
        )
    )


def _base(
    config: Config, store: Store, recipes: tuple[Recipe, ...], chance: tuple[Clock, Dice]
) -> Base:
    clock, dice = chance
    identity = identity_of(store, clock, dice)
    ledger = Ledger(store, book_of(config, store, identity, recipes), clock, dice)
    artifacts = config.installation.artifacts_url
    blobs = open_blobs(artifacts)
    scratch = open_scratch(scratch_root(artifacts, config.path.parent / "var" / "scratch"))
    return Base(config, store, ledger, blobs, scratch, clock, Metrics())


def problem_of(config: Config, key: str, error: StoreError) -> Problem:
    """What the store says, as a problem with its mend."""
    what, _, mend = str(error).partition("; ")
    return Problem(config.path.name, f"laufzettel.{key}", what, mend or "see the manual")


def user_agent() -> str:
    """What we call ourselves to others."""
    try:
        return f"Laufzettel/{version('laufzettel')}"
    except PackageNotFoundError:
        return "Laufzettel"

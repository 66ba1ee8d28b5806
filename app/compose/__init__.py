"""Puts a process together: web, worker, or both in one, and takes it apart in the right order."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from typing import cast

from app.artifacts import Blobs, Scratch, open_blobs, open_scratch, scratch_root
from app.clock import Clock, Dice, SystemClock, SystemDice
from app.compose import serving
from app.compose.preparing import (
    book_of,
    identity_of,
    orphans,
    ready_recipes,
    record_start,
    unrestored,
)
from app.compose.sharing import Shared
from app.compose.tracing import traces_missing, traces_of
from app.config import Config, Problem
from app.ledger import Ledger
from app.ledger.sequencing import Sequencing
from app.store import migrate
from app.store.engine import Store, open_store
from app.store.errors import SchemaError, StoreError, StoreOwnedError
from app.store.leases import WorkKind
from app.telemetry import Metrics, Traces, log
from domain.recipes import Recipe
from jobs.broker import LocalBroker, open_broker
from jobs.worker import KINDS, Parts, Worker

# The whole stop is to take less than 20 s: after the grace, ending tasks and threads may take 7 s.
GRACE_S = 12.0


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
    owner: str
    traces: Traces


class Process:
    """One process: web, worker or both. ``stop`` may be called once ``start`` has ended anyhow."""

    def __init__(self, base: Base, worker: Worker | None, web: serving.Serving | None) -> None:
        self.base = base
        self.web = web
        self._is_serving = False
        self._worker = worker
        self._shared = _shared(base, worker)

    @property
    def worker(self) -> Worker:
        """The working half; only of a process that has one."""
        if self._worker is None:
            raise RuntimeError("this process does no work")
        return self._worker

    def start(self) -> None:
        """Open for work; raises ``StoreError`` or what the web half raises if it cannot."""
        base = self.base
        base.ledger.committed = self._measured
        base.ledger.start()
        record_start(base.config, base.store, base.ledger, base.clock)
        if self._shared is not None:
            self._shared.start()
        if self._worker is not None:
            self._worker.start()
        base.ledger.woken = self._committed
        self._committed()
        if self.web is not None:
            self.web.start()
            self._is_serving = True
        log.info("process.started", pid=os.getpid())

    def stop(self, *, grace_s: float = GRACE_S) -> None:
        """Take nothing more, finish or hand back what runs, close; nothing accepted is lost."""
        began_s = self.base.clock.monotonic()
        if self.web is not None and self._is_serving:
            self.web.stop(grace_s=grace_s)
        left_s = grace_s - (self.base.clock.monotonic() - began_s)
        if self._worker is not None:
            self._worker.stop(grace_s=max(left_s, 0.0))
        self.base.ledger.close()
        if self._shared is not None:
            self._shared.stop()
        self.base.traces.close()
        self.base.scratch.close()
        self.base.store.close()
        log.info("process.stopped", pid=os.getpid())

    def _measured(self, requests: int, seconds: float) -> None:
        self.base.metrics.count("commands", requests)
        self.base.metrics.observe("commit_seconds", seconds)

    def _committed(self) -> None:
        if self._worker is not None:
            self._worker.look()
        if self._shared is not None:
            self._shared.committed()


def compose_run(
    config: Config,
    *,
    clock: Clock | None = None,
    dice: Dice | None = None,
    broker: LocalBroker | None = None,
    has_web: bool = True,
) -> Process | Refused:
    """Web, worker and scheduler in one process; nothing runs before ``start``.

    Without ``has_web`` nobody is listened to: facts come through the Ledger alone. ``broker``
    carries wake-ups inside the process, if not the usual one does.
    """
    base = _prepared(config, (clock or SystemClock(), dice or SystemDice()), migrate.prepare)
    if isinstance(base, Refused):
        return base
    return Process(base, _worker(base, broker=broker), _web(base) if has_web else None)


def compose_web(config: Config, *, port: int | None = None) -> Process | Refused:
    """The listening half alone, on a shared store.

    With ``port`` it is one of several that share an address, which whoever started it holds.
    """
    base = _prepared(config, (SystemClock(), SystemDice()), migrate.check)
    return base if isinstance(base, Refused) else Process(base, None, _web(base, port))


def compose_worker(config: Config, *, kinds: frozenset[WorkKind] = KINDS) -> Process | Refused:
    """The working half alone, on a shared store; it does these kinds of work."""
    base = _prepared(config, (SystemClock(), SystemDice()), migrate.check)
    return base if isinstance(base, Refused) else Process(base, _worker(base, kinds), None)


def _prepared(
    config: Config, chance: tuple[Clock, Dice], ready: Callable[[Store], object]
) -> Base | Refused:
    """What every process stands on; ``ready`` sees to the schema or raises ``SchemaError``."""
    recipes = ready_recipes(config)
    if any(isinstance(each, Problem) for each in recipes):
        return Refused(cast("tuple[Problem, ...]", recipes))
    if missing := traces_missing(config):
        return Refused((missing,))
    place = config.installation
    try:
        store = open_store(place.database_url, is_pooled=place.database_direct is not None)
    except StoreOwnedError as error:
        return Refused((problem_of(config, "database", error),))
    try:
        ready(store)
        if refused := (*unrestored(config, store), *orphans(config, store)):
            store.close()
            return Refused(refused)
        return _base(config, store, cast("tuple[Recipe, ...]", recipes), chance)
    except SchemaError as error:
        store.close()
        return Refused((problem_of(config, "database", error),))
    except BaseException:
        store.close()
        raise


def _worker(
    base: Base, kinds: frozenset[WorkKind] = KINDS, *, broker: LocalBroker | None = None
) -> Worker:
    url = base.config.installation.broker.reveal()
    return Worker(
        Parts(
            config=base.config,
            store=base.store,
            ledger=base.ledger,
            blobs=base.blobs,
            scratch=base.scratch,
            broker=broker or LocalBroker(),
            others=None if url.startswith("memory:") else open_broker(url),
            kinds=kinds,
            clock=base.clock,
            metrics=base.metrics,
            owner=base.owner,
            user_agent=user_agent(),
            traces=base.traces,
        )
    )


def _shared(base: Base, worker: Worker | None) -> Shared | None:
    if base.store.backend == "sqlite":
        return None
    sequencing = Sequencing(base.store, base.owner, base.clock)
    heard = None if worker is None else worker.look
    return Shared(base.config.installation, base.store, sequencing, base.clock, heard)


def _web(base: Base, port: int | None = None) -> serving.Serving:
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
            port=port,
            traces=base.traces,
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
    # A container's process has the same number each time, so chance tells incarnations apart.
    owner = f"{socket.gethostname()}:{os.getpid()}:{dice.salt().hex()[:8]}"
    traces = traces_of(config, version=user_agent().rpartition("/")[2], instance=owner)
    return Base(config, store, ledger, blobs, scratch, clock, Metrics(), owner, traces)


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

"""A worker: the parts that find due work, carry it out under leases, and stop without a loss."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field

import dramatiq

from app.artifacts import Blobs, Scratch
from app.clock import Clock
from app.config import Config
from app.ledger import Ledger
from app.store import leases, walks
from app.store.engine import Store
from app.store.leases import WorkKind
from app.telemetry import Metrics, Traces, log
from domain.signatures import InvalidSecret
from jobs import actors, campaigns, courier, download, notify, reaper, relay, sweep, walker
from jobs.broker import LocalBroker
from jobs.courier import Courier
from jobs.outbound import Outbound, credentials_of
from jobs.runner import Runner
from jobs.runner.claims import Claims
from jobs.runner.effects import Effects, Settings
from jobs.runner.gate import Gate
from jobs.runner.holds import Holds
from jobs.runner.terms import terms_of, transform_slots
from jobs.sandbox import Sandbox
from jobs.steps import PRELOADED
from jobs.tools import Http, Target, Tools

_FEWEST_THREADS = 32
_MOST_THREADS = 256
# How often idle threads look whether they are to stop.
_LOOK_MS = 500
KINDS: frozenset[WorkKind] = frozenset(actors.QUEUES)


@dataclass(frozen=True, slots=True)
class Parts:
    """What a worker is built from; its owner closes them, but for the brokers.

    ``others`` is the broker to processes beside this one. Only work of these ``kinds`` is done.
    """

    config: Config
    store: Store
    ledger: Ledger
    blobs: Blobs
    scratch: Scratch
    broker: LocalBroker
    clock: Clock
    metrics: Metrics
    owner: str
    user_agent: str = "Laufzettel"
    others: dramatiq.Broker | None = None
    kinds: frozenset[WorkKind] = KINDS
    traces: Traces = field(default_factory=Traces)


class Worker:
    """The working half of a process."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self._http = Outbound(clock=parts.clock, user_agent=parts.user_agent)
        self._sandbox = Sandbox(slots=transform_slots(), modules=PRELOADED)
        self._gate = Gate(terms_of(parts.config))
        self._holds = Holds(parts.ledger, parts.store, parts.clock)
        self._relay = relay.Relay(
            relay.Parts(
                store=parts.store,
                gate=self._gate,
                clock=parts.clock,
                wake=self._wake,
                recipes=lambda: tuple(parts.ledger.book.recipes.items()),
                transform_slots=transform_slots(),
                transforming=self._transforming,
                kinds=parts.kinds,
            )
        )
        self._runner = self._built_runner()
        self._reaper = reaper.Reaper(
            reaper.Parts(
                parts.ledger, parts.store, self._gate, parts.clock, parts.metrics, parts.owner
            )
        )
        digests = sweep.Digests(parts.ledger, parts.store)
        parts.blobs.guard(digests.spared)
        self._sweeper = sweep.Sweeper(
            sweep.Parts(parts.config, parts.store, parts.ledger, parts.blobs, parts.clock, digests)
        )
        self._walker = self._built_walker()
        self._campaigner = campaigns.Campaigner(
            campaigns.Parts(parts.ledger, parts.store, self._gate, parts.clock, parts.owner)
        )
        self._actors = actors.declare(parts.broker, self._runner.run)
        self._threads = dramatiq.Worker(
            parts.broker,
            queues={actors.QUEUES[kind] for kind in parts.kinds},
            worker_threads=_thread_count(self._gate),
            worker_timeout=_LOOK_MS,
        )
        self._courier = None if parts.others is None else self._built_courier(parts.others)

    def start(self) -> None:
        """Begin to work; what a former owner of this store left running is ended first."""
        if self._parts.store.backend == "sqlite":
            self._parts.ledger.operate(leases.lapse_all)
            self._parts.ledger.operate(walks.lapse_all)
        while self._reaper.round():
            pass
        self._holds.start()
        threading.Thread(target=self._warm_up, name="warm-up", daemon=True).start()
        self._threads.start()
        self._reaper.start()
        self._sweeper.start()
        self._walker.start()
        if "message" in self._parts.kinds:
            self._campaigner.start()
        self._relay.start()
        if self._courier is not None:
            self._courier.start()

    def stop(self, *, grace_s: float) -> None:
        """Claim nothing more, let what runs finish for so long, hand the rest back."""
        self._runner.stopping.set()
        self._relay.stop()
        if self._courier is not None:
            self._courier.stop()
        self._reaper.stop()
        self._sweeper.stop()
        self._walker.stop()
        self._campaigner.stop()
        is_idle = self._await_idle(grace_s)
        if not is_idle:
            left = self._runner.hand_back()
            log.warning("worker.handed_back", leases=left)
        self._sandbox.close()
        self._threads.stop(timeout=2 * _LOOK_MS)
        self._holds.stop()
        self._http.close()
        self._parts.broker.close()

    def look(self) -> None:
        """Look for due work soon; never blocks."""
        self._relay.look()

    def run(self, work: str, kind: WorkKind) -> None:
        """Do this piece of work now, if it may be done: what an actor does with a wake-up."""
        self._runner.run(work, kind)

    def reap(self) -> int:
        """End the claims that have lapsed; gives how many those were."""
        return self._reaper.round()

    @property
    def claims(self) -> int:
        """How many pieces of work are being carried out now."""
        return len(self._holds.current)

    def _warm_up(self) -> None:
        """Load what transformations need before the first of them waits for it."""
        if not self._sandbox.is_isolated:
            log.warning("sandbox.not_isolated")

    def _await_idle(self, grace_s: float) -> bool:
        never = threading.Event()
        ends_s = self._parts.clock.monotonic() + grace_s
        while self._holds.current and self._parts.clock.monotonic() < ends_s:
            self._parts.clock.wait(never, 0.02)
        return not self._holds.current

    def _wake(self, work: str, kind: WorkKind) -> bool:
        """Give the work to a thread here if one is free, else to another process."""
        if self._courier is None or self._has_room():
            self._actors[kind].send(work)
            return True
        self._courier.give(work, kind)
        return False

    def _has_room(self) -> bool:
        return self._parts.broker.load < self._threads.worker_threads

    def _transforming(self) -> int:
        return sum(held.claim.lease.kind == "transform" for held in self._holds.current)

    def _built_courier(self, broker: dramatiq.Broker) -> Courier:
        parts = self._parts
        return Courier(
            courier.Parts(
                broker=broker,
                take=lambda work, kind: self._actors[kind].send(work),
                has_room=self._has_room,
                clock=parts.clock,
                kinds=parts.kinds,
            )
        )

    def _built_walker(self) -> walker.Walker:
        parts = self._parts
        return walker.Walker(
            walker.Parts(
                sources=parts.config.sources,
                ledger=parts.ledger,
                store=parts.store,
                tools=Tools(self._http, parts.blobs, parts.scratch.path, parts.clock),
                clock=parts.clock,
                metrics=parts.metrics,
                owner=parts.owner,
            )
        )

    def _built_runner(self) -> Runner:
        parts, book = self._parts, self._parts.ledger.book
        claims = Claims(
            gate=self._gate,
            owner=parts.owner,
            incarnation=book.incarnation,
            numbers=parts.ledger.numbers,
            recipe_name=parts.ledger.recipe_name,
            is_traced=parts.traces.is_on,
        )
        tools = Tools(self._http, parts.blobs, parts.scratch.path, parts.clock)
        settings = _settings(parts, self._http)
        effects = Effects(settings, tools, scratch=parts.scratch, sandbox=self._sandbox)
        return Runner(
            ledger=parts.ledger,
            claims=claims,
            holds=self._holds,
            effects=effects,
            clock=parts.clock,
            metrics=parts.metrics,
            tried=self._relay.tried,
            kinds=parts.kinds,
            traces=parts.traces,
        )


def _settings(parts: Parts, http: Http) -> Settings:
    config, clock = parts.config, parts.clock
    sources = {
        name: made
        for source in config.sources
        for made in [download.settings_of(source.download, http=http, clock=clock)]
        for name in (source.name, *source.was)
    }
    destinations: dict[str, notify.NotifySettings] = {}
    for place in config.destinations:
        made = notify.settings_of(place, http=http, clock=clock)
        if isinstance(made, InvalidSecret):
            raise ValueError(f"destinations.{place.name}.secrets: {made.reason}")  # noqa: TRY004
        destinations |= dict.fromkeys((place.name, *place.was), made)
    book = parts.ledger.book
    proofs = {
        pinned: credentials_of(auth, http=http, clock=clock, target=Target())
        for pinned, auth in config.step_auth.items()
    }
    return Settings(book.key, book.recipes, sources, destinations, proofs)


def _thread_count(gate: Gate) -> int:
    """A thread for every slot, so that one slow destination never delays another."""
    slots = sum(gate.terms(scope).concurrency for scope in gate.scopes) + transform_slots()
    return min(max(slots, _FEWEST_THREADS), _MOST_THREADS)

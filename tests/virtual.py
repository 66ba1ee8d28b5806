"""An outbox under a clock that stands still: days of sending pass in seconds.

Store, Ledger, relay, gate, claims, breakers and the notifying itself are the real ones; the peer
is a value behind the program's own seam for HTTP. All that is sent in one step is sent at once, and
takes the receiver ``TOOK_S``.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field

from app.clock import SettableClock
from app.compose import Base
from app.store import breakers, queue
from app.store.leases import WorkKind
from domain.signatures import InvalidSecret
from jobs import notify
from jobs.relay import POLL_S, Parts, Relay
from jobs.runner import Runner
from jobs.runner.claims import Claims
from jobs.runner.effects import Effects, Settings
from jobs.runner.gate import Gate
from jobs.runner.holds import Holds
from jobs.runner.terms import terms_of
from jobs.sandbox import Sandbox
from jobs.tools import (
    Answer,
    ConnectFailed,
    Header,
    Limits,
    Request,
    Target,
    Timing,
    Tools,
    Trouble,
    Whole,
)

TOOK_S = 0.05


@dataclass(frozen=True)
class Seen:
    """One request at the receiver, at a second of the clock."""

    at_s: float
    step: int
    id: str
    body: bytes = field(repr=False)


@dataclass(frozen=True)
class Reply:
    """A short answer."""

    status: int
    headers: tuple[Header, ...] = ()
    timing: Timing = field(default_factory=Timing)

    def pour(self, sink: Callable[[bytes], object], *, limit_bytes: int) -> Whole:
        del sink, limit_bytes
        return Whole()


class Receiver:
    """A destination that can be away."""

    user_agent = "Laufzettel"

    def __init__(self, clock: SettableClock) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self.is_away = False
        self.refused: set[str] = set()
        self.tried = 0
        self.step = 0
        self.seen: list[Seen] = []

    @contextmanager
    def open(
        self, request: Request, *, target: Target, limits: Limits, pulse: Callable[[], bool]
    ) -> Iterator[Answer | Trouble]:
        del target, limits, pulse
        name = dict(request.headers)["webhook-id"]
        with self._lock:
            self.tried += 1
            if not self.is_away:
                assert isinstance(request.body, bytes)
                at_s = self._clock.monotonic()
                self.seen.append(Seen(at_s, self.step, name, request.body))
        status = 422 if name in self.refused else 204
        yield ConnectFailed("connection refused") if self.is_away else Reply(status)


class Outbox:
    """The sending half of an installation, moved by hand."""

    def __init__(self, base: Base, clock: SettableClock) -> None:
        self.base = base
        self.clock = clock
        self.receiver = Receiver(clock)
        self._found: list[tuple[str, WorkKind]] = []
        self.gate = gate = Gate(terms_of(base.config))
        self._relay = Relay(
            Parts(
                store=base.store,
                gate=gate,
                clock=clock,
                wake=self._wake,
                recipes=tuple,
                transform_slots=0,
                transforming=lambda: 0,
                kinds=frozenset({"message"}),
            )
        )
        self._runner = self._built(gate)
        self._threads = ThreadPoolExecutor(8)
        self._look_again_s = POLL_S

    def close(self) -> None:
        """End its threads."""
        self._threads.shutdown()

    def step(self) -> int:
        """Send what may be sent now, all at once; gives how many claims were tried."""
        self.receiver.step += 1
        self._look_again_s = self._relay.round()
        found, self._found = self._found, []
        list(self._threads.map(lambda each: self._runner.run(*each), found))
        return len(found)

    def pass_until(self, end_s: float) -> None:
        """Step by step until then; while nothing may be sent the clock goes to what comes next."""
        while self.clock.monotonic() < end_s:
            is_busy = self.step() > 0
            wait_s = TOOK_S if is_busy else self._until_next_s()
            self.clock.advance(min(wait_s, end_s - self.clock.monotonic()))

    def _until_next_s(self) -> float:
        """When the rate or the breaker lets one go, or the next message is due."""
        if self._look_again_s < POLL_S:
            return max(self._look_again_s, 0.001)
        now_s = self.clock.now().timestamp()
        with self.base.store.read() as connection:
            found = breakers.load(connection, "destination:erp")
            due_ms = queue.next_due_ms(connection, ["destination:erp"], int(now_s * 1000))
        circuit = json.loads(found) if found else {}
        ends_s = [circuit["until"]] if circuit.get("until", 0) > now_s else []
        if not ends_s and due_ms is not None:
            ends_s = [due_ms / 1000]
        return max(min(ends_s, default=now_s + 60) - now_s, TOOK_S)

    def _wake(self, work: str, kind: WorkKind) -> bool:
        self._found.append((work, kind))
        return True

    def _built(self, gate: Gate) -> Runner:
        base, book = self.base, self.base.ledger.book
        claims = Claims(
            gate=gate,
            owner="virtual",
            incarnation=book.incarnation,
            numbers=base.ledger.numbers,
            recipe_name=lambda _, digest: digest,
        )
        tools = Tools(self.receiver, base.blobs, base.scratch.path, self.clock)
        places: dict[str, notify.NotifySettings] = {}
        for place in base.config.destinations:
            made = notify.settings_of(place, http=self.receiver, clock=self.clock)
            assert not isinstance(made, InvalidSecret)
            places[place.name] = made
        settings = Settings(book.key, book.recipes, {}, places)
        return Runner(
            ledger=base.ledger,
            claims=claims,
            holds=Holds(base.ledger, base.store, self.clock),
            effects=Effects(settings, tools, scratch=base.scratch, sandbox=Sandbox(slots=1)),
            clock=self.clock,
            metrics=base.metrics,
            tried=self._relay.tried,
        )

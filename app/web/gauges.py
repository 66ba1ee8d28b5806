"""Numbers that the store knows, read when they are asked for: what waits, for how long, who works.

They follow what people miss: work that does not move, a source that fell silent, no worker.
"""

from __future__ import annotations

from typing import Any

from app.clock import Clock
from app.config import Config
from app.store import breakers, sequencer, workers
from app.store.engine import Store
from app.store.reading import overview
from app.telemetry import Metrics
from domain.breaker import BreakerPolicy, Open, load

KINDS = ("download", "transform", "message")
# A worker writes down that it lives four times as often.
ALIVE_MS = 60_000


class Gauges:
    """Sets the gauges of one process from the store that all share."""

    def __init__(self, store: Store, metrics: Metrics, clock: Clock, config: Config) -> None:
        self._store = store
        self._metrics = metrics
        self._clock = clock
        self._sources = [source.name for source in config.sources]
        self._destinations = [place.name for place in config.destinations]

    def measure(self) -> None:
        """Read and set them all; raises ``StoreError``."""
        now_ms = int(self._clock.now().timestamp() * 1000)
        with self._store.read() as connection:
            self._work(connection, now_ms)
            self._circuits(connection)
            for source in self._sources:
                if last_ms := overview.last_delivery_ms(connection, source):
                    silent_s = (now_ms - last_ms) / 1000
                    self._metrics.set("source_silent_seconds", silent_s, source=source)
            self._metrics.set("workers", workers.alive(connection, now_ms - ALIVE_MS))
            if self._store.backend == "postgresql":
                self._metrics.set("unsequenced", sequencer.unsequenced(connection))
                age_s, _ = sequencer.frontier_age_s(connection)
                self._metrics.set("frontier_age_seconds", age_s)

    def _work(self, connection: Any, now_ms: int) -> None:
        oldest, due = overview.oldest_due(connection, now_ms), overview.due(connection, now_ms)
        for kind in KINDS:
            late_s = (now_ms - oldest.get(kind, now_ms)) / 1000
            self._metrics.set("oldest_due_seconds", late_s, kind=kind)
            self._metrics.set("due", due.get(kind, 0), kind=kind)
        for kind, table in (("job", "jobs"), ("message", "messages")):
            dead = overview.states(connection, table, None).get("dead", 0)
            self._metrics.set("dead_letters", dead, kind=kind)
        unclear = overview.unclear(connection)
        for destination in self._destinations:
            self._metrics.set("unclear", unclear.get(destination, 0), destination=destination)

    def _circuits(self, connection: Any) -> None:
        for scope, text in breakers.load_all(connection).items():
            part, _, name = scope.partition(":")
            if part == "destination":
                is_open = isinstance(load(BreakerPolicy(), text).phase, Open)
                self._metrics.set("breaker_open", is_open, destination=name)

"""Surplus wake-ups to other processes over a broker, and theirs to this one.

Nothing waits for the broker: it may be down, late or emptied, or deliver twice. The row of the
work is the truth, and every process looks for due rows by itself.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable
from dataclasses import dataclass

import dramatiq
from dramatiq.errors import BrokerConnectionError

from app.clock import Clock
from app.store.leases import WorkKind
from app.telemetry import log
from jobs import actors

_MOST_WAITING = 512
_TRY_AGAIN_S = 1.0
_LOOK_S = 0.25
_LOOK_MS = 500
# How long a wake-up from elsewhere waits for a free thread before it is dropped.
_ROOM_S = 1.0
_LOOK_AGAIN_S = 0.01


@dataclass(frozen=True, slots=True)
class Parts:
    """What a courier works with: ``has_room`` says whether ``take`` would be carried out soon."""

    broker: dramatiq.Broker
    take: Callable[[str, WorkKind], object]
    has_room: Callable[[], bool]
    clock: Clock
    kinds: frozenset[WorkKind]


class Courier:
    """Sends by a thread of its own, and takes in only what finds a free thread here."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self._waiting: queue.Queue[tuple[str, WorkKind]] = queue.Queue(_MOST_WAITING)
        self._stopping = threading.Event()
        self._actors = actors.declare(parts.broker, self._received)
        queues = {actors.QUEUES[kind] for kind in parts.kinds}
        self._worker = dramatiq.Worker(
            parts.broker, queues=queues, worker_threads=1, worker_timeout=_LOOK_MS
        )
        self._thread = threading.Thread(target=self._work, name="courier", daemon=True)

    def start(self) -> None:
        """Begin to carry; a broker that is down is tried again and again."""
        self._worker.start()
        self._thread.start()

    def stop(self) -> None:
        """Carry nothing more; what waits here is found by others as it is due."""
        self._stopping.set()
        self._worker.stop(timeout=4 * _LOOK_MS)
        if self._thread.is_alive():
            self._thread.join()
        self._parts.broker.close()

    def give(self, work: str, kind: WorkKind) -> bool:
        """Let this wake-up go to another process; false if too many wait already."""
        try:
            self._waiting.put_nowait((work, kind))
        except queue.Full:
            return False
        return True

    def _received(self, work: str, kind: WorkKind) -> None:
        clock = self._parts.clock
        ends_s = clock.monotonic() + _ROOM_S
        while not self._parts.has_room():
            if clock.monotonic() >= ends_s or clock.wait(self._stopping, _LOOK_AGAIN_S):
                return
        self._parts.take(work, kind)

    def _work(self) -> None:
        while not self._stopping.is_set():
            try:
                work, kind = self._waiting.get(timeout=_LOOK_S)
            except queue.Empty:
                continue
            try:
                self._actors[kind].send(work)
            except BrokerConnectionError as error:
                log.warning("broker.unavailable", reason=str(error) or type(error).__name__)
                self._forget()
                self._parts.clock.wait(self._stopping, _TRY_AGAIN_S)

    def _forget(self) -> None:
        """What waited while the broker was down is old news by the time it is up."""
        while not self._waiting.empty():
            self._waiting.get_nowait()

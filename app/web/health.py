"""What load balancers and Prometheus ask: alive, ready, numbers."""

from __future__ import annotations

import asyncio
import threading
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Literal

from litestar import MediaType, Response, get
from litestar.datastructures import State

from app.ledger import Ledger
from app.store.engine import Store
from app.store.errors import StoreError
from app.telemetry import Metrics
from app.web.gauges import Gauges

_CHECK_S = 2.0
_NO_STORE = {"cache-control": "no-store"}
_METRICS_TYPE = "text/plain; version=0.0.4"


@dataclass(frozen=True, slots=True)
class Vitals:
    """What readiness is judged by."""

    store: Store
    ledger: Ledger
    metrics: Metrics
    stopping: threading.Event
    gauges: Gauges


@dataclass(frozen=True, slots=True)
class Live:
    """The process answers."""

    status: Literal["live"] = "live"


@dataclass(frozen=True, slots=True)
class Ready:
    """Whether deliveries may be sent here, and each part that this needs."""

    status: Literal["ready", "not-ready"]
    parts: dict[str, str]


@get("/health/live", summary="The process answers", tags=["health"])
async def live() -> Response[Live]:
    """Ask no part: an answer is the proof."""
    return Response(Live(), headers=_NO_STORE)


@get("/health/ready", summary="Deliveries may be sent here", tags=["health"])
async def ready(state: State) -> Response[Ready]:
    """200 when all parts that acceptance needs work, else 503; workers and receivers are none."""
    vitals: Vitals = state.vitals
    try:
        database = await asyncio.wait_for(asyncio.to_thread(_database, vitals.store), _CHECK_S)
    except TimeoutError:
        database = "does not answer"
    parts = {
        "process": "stopping" if vitals.stopping.is_set() else "ok",
        "database": database,
        "ledger": "ok" if vitals.ledger.is_open else "closed",
    }
    is_ready = set(parts.values()) == {"ok"}
    found = Ready("ready" if is_ready else "not-ready", parts)
    return Response(found, status_code=200 if is_ready else 503, headers=_NO_STORE)


@get("/metrics", summary="Prometheus' numbers", tags=["health"], media_type=MediaType.TEXT)
async def metrics(state: State) -> Response[bytes]:
    """All metrics of this process in Prometheus' text form."""
    vitals: Vitals = state.vitals
    vitals.metrics.set("commands_waiting", vitals.ledger.waiting)
    # Without the database the rest of the numbers is still worth having.
    with suppress(StoreError):
        await asyncio.to_thread(vitals.gauges.measure)
    return Response(vitals.metrics.page(), headers=_NO_STORE, media_type=_METRICS_TYPE)


def _database(store: Store) -> str:
    try:
        store.ping()
    except StoreError:
        return "unavailable"
    return "ok"


HANDLERS: list[Any] = [live, ready, metrics]

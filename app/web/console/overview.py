"""The first page: what needs a human, how much goes through, and what waits."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from litestar import get
from litestar.datastructures import State

from app.config import Config
from app.store.reading import rates
from app.web.api import overview, parts
from app.web.console.asking import ask
from app.web.console.glance import Glances
from app.web.console.pages import Page, Visit, Visiting, page
from app.web.console.session import signed_in

# What each need says to people; its name and reason are shown beside it.
NEEDS: Mapping[str, str] = {
    "dead-job": "Jobs that gave up",
    "dead-message": "Messages that gave up",
    "unclear": "Messages without an answer",
    "held": "Messages held for you",
    "conflict": "Conflicting deliveries",
    "breaker": "Calls are stopped",
    "silent-source": "A source fell silent",
    "subscription": "A subscription needs you",
    "waiting": "Work waits too long",
}
_MINUTE_MS = 60_000
_MINUTES = 60
_HEIGHT = 40.0
_WIDTH = 6


@dataclass(frozen=True, slots=True)
class Bar:
    """One minute of a chart."""

    x: int
    y: float
    height: float
    value: float
    ago: int


@dataclass(frozen=True, slots=True)
class Chart:
    """A row of bars, the latest last."""

    bars: tuple[Bar, ...]
    most: float


@get("/", guards=[signed_in("viewer")], sync_to_thread=True)
def overview_page(visit: Visiting, state: State) -> Page:
    """How things stand."""
    glances: Glances = state.glances
    counted = glances.of(visit.who.sources, partial(_counted, visit))
    return page(visit, "overview.html", words=NEEDS, **counted)


def _counted(visit: Visit) -> dict[str, Any]:
    office, who = visit.office, visit.who
    return {
        "status_of": ask(overview.status, office, who),
        "stats": ask(overview.stats, office, who),
        "sources": parts.sources_out(office, who),
        "destinations": parts.destinations_out(office),
        **_numbers(visit),
    }


def _numbers(visit: Visit) -> dict[str, Any]:
    office, who = visit.office, visit.who
    now_minute = office.now_ms // _MINUTE_MS
    since_ms = (now_minute - _MINUTES + 1) * _MINUTE_MS
    with office.store.read() as connection:
        sources = [s.name for s in office.config.sources if who.sees(s.name)]
        accepted = rates.accepted(connection, since_ms, sources)
        tried = rates.attempts(connection, since_ms, _scopes(office.config, sources))
    ended = sum(minute.ended for minute in tried.values())
    failed = sum(minute.failed for minute in tried.values())
    took = sum(minute.took_ms for minute in tried.values())
    return {
        "accepted_hour": sum(accepted.values()),
        "accepted_rate": sum(accepted.values()) / (_MINUTES * 60),
        "attempts_hour": ended,
        "error_rate": failed / ended if ended else 0.0,
        "mean_ms": took / ended if ended else 0.0,
        "charts": {
            "accepted": _chart(accepted, now_minute),
            "failed": _chart({m: float(v.failed) for m, v in tried.items()}, now_minute),
            "took": _chart({m: v.took_ms / max(v.ended, 1) for m, v in tried.items()}, now_minute),
        },
    }


def _scopes(config: Config, sources: list[str]) -> list[str]:
    """Whose attempts count: downloads by source, messages by destination, steps by name."""
    steps = {step.name for each in config.recipes for step in each.recipe.steps}
    places = [place.name for place in config.destinations]
    return [
        *(f"source:{name}" for name in sources),
        *(f"destination:{name}" for name in places),
        *(f"step:{name}" for name in sorted(steps)),
    ]


def _chart(values: Mapping[int, float], now_minute: int) -> Chart:
    minutes = range(now_minute - _MINUTES + 1, now_minute + 1)
    found = [float(values.get(minute, 0)) for minute in minutes]
    most = max(found)
    bars = []
    for at, value in enumerate(found):
        height = round(max(value / most * _HEIGHT, 1.0), 1) if value and most else 0.0
        bars.append(Bar(at * _WIDTH, _HEIGHT - height, height, value, _MINUTES - 1 - at))
    return Chart(tuple(bars), most)


HANDLERS: list[Any] = [overview_page]

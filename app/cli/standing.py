"""``status``, ``dead`` and ``stats``: how things stand, and what needs a human."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from app.cli import words
from app.cli.client import Api
from app.cli.screen import FAILED
from app.cli.views import Column, View, listed, reading, table, text, time

if TYPE_CHECKING:  # --help needs none of it
    from rich.console import RenderableType

# What it is about, in the singular and the plural, and the command that shows more of it.
_NEEDS = {
    "dead-job": (
        "job of {name} gave up",
        "jobs of {name} gave up",
        "laufzettel retry --name {name} --dry-run",
    ),
    "dead-message": (
        "message to {name} gave up",
        "messages to {name} gave up",
        "laufzettel retry --name {name} --dry-run",
    ),
    "unclear": (
        "message is unclear",
        "messages are unclear",
        "laufzettel messages --state unclear",
    ),
    "held": ("message is held", "messages are held", "laufzettel messages --state held"),
    "conflict": (
        "delivery is in quarantine",
        "deliveries are in quarantine",
        "laufzettel deliveries --verdict conflict",
    ),
    "breaker": ("{name} is cut off", "wait: {name} is cut off", "laufzettel stats"),
    "silent-source": (
        "{name} is silent",
        "{name} is silent",
        "laufzettel deliveries --source {name}",
    ),
    "paused": (
        "{name} paused itself",
        "{name} paused itself",
        "laufzettel resume {name} --reason …",
    ),
    "waiting": ("the oldest {name} waits too long", "{name} wait too long", "laufzettel stats"),
}
_ENDINGS = {"again": "failed", "dead": "failed for good", "lost": "cut off as their worker died"}
_UNKNOWN = ("{name}", "{name}", "laufzettel stats")


def _need(row: dict[str, Any]) -> str:
    one, many, _ = _NEEDS.get(row["what"], _UNKNOWN)
    if not row["count"]:
        return one.format(name=row["name"])
    return words.counted(row["count"], one.format(name=row["name"]), many.format(name=row["name"]))


def _look(row: dict[str, Any]) -> str:
    return _NEEDS.get(row["what"], _UNKNOWN)[-1].format(name=shlex.quote(row["name"]))


def _paused(row: dict[str, Any], moment: words.Moment) -> str:
    pause = row["paused"]
    return f"{moment.shown(pause['since'])}: {pause['reason']}" if pause else ""


def _breaker(row: dict[str, Any], moment: words.Moment) -> str:
    """The circuit; of one that is cut off also when what waits for it goes on."""
    until = words.instant(row.get("breaker_until"))
    return f"{row['breaker']}, next try {moment.clock(until)}" if until else str(row["breaker"])


def _again(row: dict[str, Any]) -> str:
    return f"laufzettel retry --name {shlex.quote(row['name'])} --error {shlex.quote(row['error'])}"


def counts(told: dict[str, int]) -> str:
    """Counts by state, the largest first."""
    ordered = sorted(told.items(), key=lambda pair: -pair[1])
    return words.clean(", ".join(f"{count} {state}" for state, count in ordered))


def _tries(row: dict[str, Any], _: words.Moment) -> str:
    """How the latest tries ended."""
    told = row["outcomes"]
    return counts({_ENDINGS.get(outcome, outcome): count for outcome, count in told.items()})


_STATUS = (
    Column("what needs a human", lambda row, _: _need(row), style=lambda _: "bold red"),
    text("why", "reason"),
    Column("what to do", lambda row, _: _look(row), is_whole=True),
)
_DEAD = (
    Column("count", lambda row, _: str(row["count"]), is_number=True),
    text("kind", "kind"),
    text("name", "name"),
    text("why", "error"),
    time("first", "oldest_at"),
    time("last", "newest_at"),
    Column("what to do", lambda row, _: _again(row)),
)
_DESTINATIONS = (
    text("destination", "name"),
    Column("breaker", _breaker, style=lambda row: words.style(row["breaker"])),
    Column("messages", lambda row, _: counts(row["states"])),
    Column("last hour", _tries),
    Column("mean", lambda row, _: f"{row['mean_ms']:.0f} ms", is_number=True),
    time("oldest due", "oldest_due_at"),
    Column("paused", _paused, style=lambda _: "yellow"),
)
_SOURCES = (
    text("source", "name"),
    Column("breaker", _breaker, style=lambda row: words.style(row["breaker"])),
    time("last delivery", "last_delivery_at"),
    Column("last hour", lambda row, _: counts(row["verdicts"])),
    Column("paused", _paused, style=lambda _: "yellow"),
)


@reading
def status(api: Api) -> View:
    """Say what needs a human. Exit status 1 if anything does."""
    document = api.get("/status")

    def shown(moment: words.Moment) -> Iterator[RenderableType]:
        if document["needs"]:
            yield table(document["needs"], _STATUS, moment)
        else:
            yield "Nothing needs a human."
        for what, pause in document["paused"].items():
            told = f"Paused: {what}, {moment.shown(pause['since'])}, by {pause['operator']}"
            yield words.clean(f"{told}: {pause['reason']}")

    return View(document, shown, 0 if document["ok"] else FAILED)


@reading
def dead(api: Api) -> View:
    """List what gave up, grouped by cause, the most frequent first."""
    return listed(api.get("/dead-letters"), _DEAD, "Nothing gave up.")


@reading
def stats(api: Api) -> View:
    """Show counts by state, what is oldest, and how sources and destinations stand."""
    document = api.get("/stats")

    def shown(moment: words.Moment) -> Iterable[RenderableType]:
        yield from _numbers(document, moment)
        yield table(api.get("/destinations")["items"], _DESTINATIONS, moment)
        yield table(api.get("/sources")["items"], _SOURCES, moment)

    return View(document, shown)


def _numbers(document: dict[str, Any], moment: words.Moment) -> Iterator[str]:
    for kind in ("files", "jobs", "messages", "running"):
        yield f"{kind:12} {counts(document[kind]) or 'none'}"
    for kind, late_s in document["oldest_due_s"].items():
        yield f"{'due':12} the oldest {kind} since {words.span(max(late_s, 0.0))}"
    if document["oldest_retry_at"]:
        yield f"{'retrying':12} the oldest since {moment.shown(document['oldest_retry_at'])}"
    yield f"{'log':12} {document['position']} events"

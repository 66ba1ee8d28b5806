"""All streams of the log, in spans of a short snapshot each."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import sqlalchemy as sa

from app.replay.comparing import Difference, differences
from app.replay.folding import SetAside, fold_stream
from app.store import locks, projections
from app.store import tables as t
from app.store.codec import UnknownEventError, decode_event
from app.store.engine import Store
from app.store.projections import Row
from app.store.rebuilding import (
    Raw,
    Rows,
    by_stream,
    count_events,
    next_span,
    read_control_rows,
    read_events,
    read_rows,
    rewrite,
)
from domain.installation import CONTROL_STREAM, Paused, RecipeDefined, Resumed
from domain.states import File

STREAMS_AT_ONCE = 500
MOST_LISTED = 1000

Progress = Callable[[int, int], None]
Wanted = dict[sa.Table, list[Row]]


class Operate(Protocol):
    """Runs a write in the Ledger's next transaction: ``Ledger.operate``."""

    def __call__(self, operation: Callable[[sa.Connection, int], None], /) -> None:
        """Run it, and return after the commit."""
        ...


@dataclass(slots=True)
class Outcome:
    """What a replay found. The lists are bounded, the counts are not."""

    streams: int = 0
    events: int = 0
    swapped: int = 0
    differing: int = 0
    unknown: Counter[str] = field(default_factory=Counter)
    aside: list[SetAside] = field(default_factory=list)
    differences: list[Difference] = field(default_factory=list)

    @property
    def is_equal(self) -> bool:
        """Whether every row was as the log makes it."""
        return not self.differing and not self.aside

    def note(self, found: Iterable[Difference]) -> bool:
        """Count differences; whether there were any."""
        before = self.differing
        for difference in found:
            self.differing += 1
            if len(self.differences) < MOST_LISTED:
                self.differences.append(difference)
        return self.differing > before


def replay(
    store: Store, *, progress: Progress = lambda _, __: None, swap: Operate | None = None
) -> Outcome:
    """Compare every projected row with what the log makes of it; swap rewrites what differs.

    Unknown events are passed over and counted; a stream with a broken one is set aside, listed
    and left as it is. The log is only read.
    """
    outcome = Outcome()
    with store.read() as connection:
        total = count_events(connection)
    _replay_control(store, outcome, swap)
    after, is_last = "", False
    while not is_last:
        with store.snapshot() as connection:
            span = next_span(connection, after, streams=STREAMS_AT_ONCE)
            events = read_events(connection, span)
            live = read_rows(connection, span)
        differing = _compare(outcome, by_stream(events), live)
        if swap is not None:
            _swap(outcome, differing, swap)
        after, is_last = span.upto, not span.upto
        progress(outcome.events, max(total, outcome.events))
    return outcome


def _compare(outcome: Outcome, streams: dict[str, list[Raw]], live: Rows) -> list[str]:
    """Note the differences of a span; gives the streams that have some."""
    rows = _by_stream(live)
    differing = []
    for stream in dict.fromkeys((*streams, *rows)):
        events = streams.get(stream, [])
        outcome.events += len(events)
        outcome.streams += bool(events)
        folded = fold_stream(events)
        if isinstance(folded, SetAside):
            outcome.aside.append(folded)
            continue
        outcome.unknown.update(folded.unknown)
        if outcome.note(differences(_wanted(stream, folded.file), rows.get(stream, _NOTHING))):
            differing.append(stream)
    return differing


_NOTHING: dict[sa.Table, dict[str, Row]] = {table: {} for table in t.PROJECTED_BY_STREAM}


def _by_stream(live: Rows) -> dict[str, dict[sa.Table, dict[str, Row]]]:
    found: dict[str, dict[sa.Table, dict[str, Row]]] = {}
    for table, rows in live.items():
        for key, row in rows.items():
            own = found.setdefault(row["stream"], {other: {} for other in t.PROJECTED_BY_STREAM})
            own[table][key] = row
    return found


def _wanted(stream: str, file: File | None) -> Wanted:
    if file is None:
        return {table: [] for table in t.PROJECTED_BY_STREAM}
    return projections.rows(stream, file)


def _swap(outcome: Outcome, streams: Sequence[str], operate: Operate) -> None:
    for stream in streams:

        def rewrite_stream(connection: sa.Connection, _: int, stream: str = stream) -> None:
            locks.lock(connection, [stream])
            folded = fold_stream(read_events(connection, stream))
            if not isinstance(folded, SetAside):
                rewrite(connection, _wanted(stream, folded.file), read_rows(connection, stream))

        operate(rewrite_stream)
        outcome.swapped += 1


# -- the installation's own stream ---------------------------------------------------------------


def _replay_control(store: Store, outcome: Outcome, operate: Operate | None) -> None:
    with store.snapshot() as connection:
        events = read_events(connection, CONTROL_STREAM)
        live = read_control_rows(connection)
    if isinstance(fold_stream(events), SetAside):
        return  # it is listed when its span comes
    if outcome.note(differences(_control_rows(events), live)) and operate is not None:
        operate(_rewrite_control)
        outcome.swapped += 1


def _rewrite_control(connection: sa.Connection, _: int) -> None:
    locks.lock(connection, [CONTROL_STREAM])
    wanted = _control_rows(read_events(connection, CONTROL_STREAM))
    rewrite(connection, wanted, read_control_rows(connection))


def _control_rows(events: Sequence[Raw]) -> Wanted:
    recipes: dict[str, Row] = {}
    controls: dict[str, Row] = {}
    for raw in events:
        try:
            recorded = decode_event(raw.body, raw.parts)
        except UnknownEventError:
            continue
        match recorded.event:
            case RecipeDefined(digest=digest):
                recipes[digest] = projections.recipe_row(recorded.event)
            case Paused(what=what):
                controls[what] = projections.control_row(recorded.event, recorded.cause)
            case Resumed(what=what):
                controls.pop(what, None)
            case _:
                pass
    return {t.recipes: list(recipes.values()), t.controls: list(controls.values())}

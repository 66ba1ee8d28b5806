"""How things stand: numbers, what needs a human, who did what and why."""

from __future__ import annotations

from typing import Any

from litestar import get
from litestar.params import FromQuery
from msgspec import Struct, structs

from app.store.reading import files, log, overview, work
from app.store.reading.log import LogFilter
from app.store.reading.pages import CursorError, decode_cursor, encode_cursor
from app.web.api.log import LogEvent, event_out
from app.web.api.office import Asker, Cursor, Here, Limit, Listing, Office, at, moment
from app.web.api.parts import (
    DestinationOut,
    PauseOut,
    SourceOut,
    destinations_out,
    paused_parts,
    sources_out,
)
from app.web.auth import Who, needs
from app.web.problems import Problem
from app.web.rest import ProblemError
from domain.installation import SubscriptionNoticed

_TAGS = ["overview"]
_LATELY_MS = 86_400_000
_FEED_IS_TROUBLE = 3


class Stats(Struct):
    """Counts by state, how old the oldest due and the oldest retried work is."""

    files: dict[str, int]
    jobs: dict[str, int]
    messages: dict[str, int]
    running: dict[str, int]
    oldest_due_s: dict[str, float]
    oldest_retry_at: str | None
    commands_waiting: int
    position: int


class Need(Struct):
    """Something that waits for a human: what, how often, and where to look."""

    what: str
    name: str
    count: int
    reason: str
    see: str


class Status(Struct):
    """Whether anything needs a human, and what."""

    ok: bool
    needs: list[Need]
    paused: dict[str, PauseOut]


@get("/stats", guards=[needs("viewer")], sync_to_thread=True, summary="Numbers", tags=_TAGS)
def stats(office: Here, who: Asker) -> Stats:
    """Counts of what you may see, and how old the oldest of it is."""
    now_ms = office.now_ms
    with office.store.read() as connection:
        oldest = overview.oldest_due(connection, now_ms)
        return Stats(
            files=overview.states(connection, "files", who.sources),
            jobs=overview.states(connection, "jobs", who.sources),
            messages=overview.states(connection, "messages", who.sources),
            running=overview.running(connection),
            oldest_due_s={kind: (now_ms - due_ms) / 1000 for kind, due_ms in oldest.items()},
            oldest_retry_at=at(overview.oldest_retry_ms(connection)),
            commands_waiting=office.ledger.waiting,
            position=log.last_position(connection),
        )


@get(
    "/status",
    guards=[needs("viewer")],
    sync_to_thread=True,
    summary="What needs a human",
    tags=_TAGS,
)
def status(office: Here, who: Asker) -> Status:
    """Dead letters by cause, open breakers, silent sources, unclear messages, conflicts."""
    found = needs_of(office, who)
    return Status(ok=not found, needs=found, paused=paused_parts(office))


def needs_of(office: Office, who: Who) -> list[Need]:
    """All that waits for a human."""
    with office.store.read() as connection:
        found = [
            Need(f"dead-{cause.kind}", cause.name, cause.count, cause.error, "/dead-letters")
            for cause in work.causes(connection, who.sources, needed=True)
        ]
        states = overview.states(connection, "messages", who.sources)
        conflicts = overview.conflicts(connection, who.sources)
        oldest = overview.oldest_due(connection, office.now_ms)
    found += [
        Need(word, "", states[word], "sent, and no answer came", f"/messages?state={word}")
        for word in ("unclear", "held")
        if states.get(word)
    ]
    if conflicts:
        why = "other bytes under a known event id"
        found.append(Need("conflict", "", conflicts, why, "/deliveries?verdict=conflict"))
    found += _subscriptions(office, who)
    found += _of_parts(office, who)
    found += _waiting(office, oldest)
    return found + _paused_by_itself(office)


@get(
    "/audit",
    guards=[needs("viewer")],
    sync_to_thread=True,
    summary="Who did what, and why",
    tags=_TAGS,
)
def audit(
    office: Here,
    who: Asker,
    operator: FromQuery[str] = "",
    since: FromQuery[str] = "",
    file: FromQuery[str] = "",
    limit: Limit = 50,
    cursor: Cursor = "",
) -> Listing[LogEvent]:
    """What operators ordered, the last first; ``file`` is the id of the one it was about."""
    start = moment(since) if since else None
    if since and start is None:
        raise ProblemError(Problem(400, "invalid-request", "since: must be a time in RFC 3339"))
    wanted = LogFilter(
        stream=file,
        operator=operator,
        since_ms=int(start.timestamp() * 1000) if start else 0,
        sources=who.sources,
    )
    try:
        before = int(decode_cursor(cursor, int)[0]) if cursor else None
    except CursorError as error:
        raise ProblemError(Problem(400, "invalid-request", str(error))) from None
    with office.store.read() as connection:
        found = log.orders(connection, before, wanted, limit=limit + 1)
        names = files.names(connection, {item.recorded.stream for item in found})
    is_more = len(found) > limit
    found = found[:limit]
    following = encode_cursor((found[-1].position,)) if is_more else None
    shown = [event_out(item) for item in found]
    named = [structs.replace(item, file=names.get(item.stream, "")) for item in shown]
    return Listing(named, following)


def _subscriptions(office: Here, who: Asker) -> list[Need]:
    """What sources said lately of the subscription itself: it ran out, or will."""
    wanted = LogFilter(type="SubscriptionNoticed", sources=who.sources)
    with office.store.read() as connection:
        end = log.last_position(connection) + 1
        told = [p.recorded.event for p in log.before(connection, end, wanted, limit=100)]
    lately = {
        event.source: event.type
        for event in reversed(told)
        if isinstance(event, SubscriptionNoticed) and event.at_ms > office.now_ms - _LATELY_MS
    }
    see = "/log?type=SubscriptionNoticed"
    return [Need("subscription", source, 1, word, see) for source, word in lately.items()]


def _next(place: DestinationOut | SourceOut) -> str:
    """When what waits for a part that is cut off goes on."""
    return f"next try {place.breaker_until}" if place.breaker_until else "the next try is due"


def _of_parts(office: Here, who: Asker) -> list[Need]:
    found = []
    for place in destinations_out(office):
        if place.breaker in {"open", "half-open"}:
            number = place.states.get("waiting", 0) + place.states.get("pending", 0)
            why = f"open since {place.breaker_since}, {_next(place)}: {place.last_error}"
            found.append(Need("breaker", place.name, number, why, "/destinations"))
    for source in sources_out(office, who):
        if source.breaker in {"open", "half-open"}:
            why = f"its downloads failed again and again, {_next(source)}"
            found.append(Need("breaker", source.name, 0, why, "/sources"))
        if source.changes and source.changes.failures >= _FEED_IS_TROUBLE:
            why = f"its change feed cannot be read: {source.changes.error}"
            found.append(Need("change-feed", source.name, 0, why, "/sources"))
        if source.silent and source.last_delivery_at:
            why = f"no delivery since {source.last_delivery_at}"
            found.append(Need("silent-source", source.name, 0, why, "/sources"))
    return found


def _paused_by_itself(office: Office) -> list[Need]:
    """What nobody ordered: a receiver that is gone, or that refused everything."""
    return [
        Need("paused", what, 0, f"since {pause.since}: {pause.reason}", "/destinations")
        for what, pause in paused_parts(office).items()
        if not pause.operator
    ]


def _waiting(office: Here, oldest: dict[str, int]) -> list[Need]:
    limit_ms = office.config.alerts.oldest_waiting_s * 1000
    late = {kind: due_ms for kind, due_ms in oldest.items() if office.now_ms - due_ms > limit_ms}
    return [
        Need("waiting", kind, 0, f"the oldest is due since {at(due_ms)}", "/stats")
        for kind, due_ms in late.items()
    ]


HANDLERS: list[Any] = [stats, status, audit]

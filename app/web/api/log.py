"""The log in order, and live; a destination's messages for those who would rather pull."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import msgspec
from litestar import MediaType, Request, Response, get
from litestar.params import FromPath, FromQuery
from litestar.response import ServerSentEvent, ServerSentEventMessage
from msgspec import Struct

from app.store.reading import log
from app.store.reading.log import FeedItem, LogFilter, Positioned
from app.telemetry.logs import without_credentials
from app.web.api.office import Asker, Here, Limit, Office, at
from app.web.auth import needs
from app.web.problems import Problem
from app.web.rest import ProblemError

_TAGS = ["log"]
_LOOK_AGAIN_S = 0.5
_STILL_HERE_S = 15.0
_LIVE_LIMIT = 200


class CauseOut(Struct):
    """Who or what was behind it."""

    kind: str
    id: str
    operator: str
    reason: str
    trace: str


class LogEvent(Struct):
    """One event; ``data`` has what was erased as "", and addresses without their query."""

    position: int
    stream: str
    revision: int
    type: str
    at: str | None
    cause: CauseOut
    data: dict[str, Any]


class LogPage(Struct):
    """Events in order; ask again ``after`` the position ``next``."""

    items: list[LogEvent]
    next: int


class FeedMessage(Struct):
    """One message as it is sent to those that do not pull."""

    id: str
    cursor: str
    body: Any


class FeedPage(Struct):
    """Messages in order; ask again ``after`` the cursor ``next``."""

    items: list[FeedMessage]
    next: str


@get("/log", guards=[needs("viewer")], summary="The log, in order or live", tags=_TAGS)
async def log_page(
    request: Request[Any, Any, Any],
    office: Here,
    who: Asker,
    after: FromQuery[int] = 0,
    stream: FromQuery[str] = "",
    type: FromQuery[str] = "",  # noqa: A002 - the parameter's name is fixed
    limit: Limit = 100,
) -> Response[Any]:
    """Events behind a position. ``Accept: text/event-stream`` follows the log live."""
    wanted = LogFilter(stream=stream, type=type, sources=who.sources)
    if "text/event-stream" in request.headers.get("accept", ""):
        resumed = request.headers.get("last-event-id", "")
        start = int(resumed) if resumed.isascii() and resumed.isdecimal() else after
        return ServerSentEvent(_live(office, start, wanted))
    found = await asyncio.to_thread(_behind, office, after, wanted, limit)
    following = found[-1].position if found else after
    page = LogPage([event_out(item) for item in found], following)
    return Response(page, media_type=MediaType.JSON)


@get(
    "/files/{file:str}/log",
    guards=[needs("viewer")],
    sync_to_thread=True,
    summary="A file's events",
    tags=_TAGS,
)
def file_log(
    office: Here, who: Asker, file: FromPath[str], after: FromQuery[int] = 0, limit: Limit = 100
) -> LogPage:
    """All that was recorded of one file, in order."""
    wanted = LogFilter(stream=file, sources=who.sources)
    found = _behind(office, after, wanted, limit)
    following = found[-1].position if found else after
    return LogPage([event_out(item) for item in found], following)


@get(
    "/feed/{destination:str}",
    guards=[needs("receiver")],
    sync_to_thread=True,
    summary="Messages, for pulling",
    tags=["feed"],
)
def feed(
    office: Here,
    who: Asker,
    destination: FromPath[str],
    after: FromQuery[str] = "",
    limit: Limit = 100,
) -> FeedPage:
    """A destination's messages in the order of the log, the same that are sent.

    A cursor from before a restore is answered with 410 and the place to read again from.
    """
    is_theirs = who.destination in {None, destination} and who.sources is None
    if not is_theirs or office.config.destination(destination) is None:
        raise ProblemError(Problem(404, "not-found"))
    position = _position(office, after)
    with office.store.read() as connection:
        found, read = log.feed(connection, destination, position, limit=limit)
    incarnation = office.ledger.book.incarnation
    items = [_fed(item, incarnation) for item in found]
    return FeedPage(items, f"{incarnation}.{read}")


def event_out(item: Positioned) -> LogEvent:
    """An event as it is shown."""
    recorded = item.recorded
    data: dict[str, Any] = msgspec.to_builtins(recorded.event)
    at_ms = data.pop("at_ms")
    if data.get("url"):
        data["url"] = without_credentials(data["url"])
    cause = recorded.cause
    return LogEvent(
        position=item.position,
        stream=recorded.stream,
        revision=recorded.revision,
        type=type(recorded.event).__name__,
        at=at(at_ms),
        cause=CauseOut(cause.kind, cause.id, cause.operator, cause.reason, cause.trace),
        data=data,
    )


def _behind(office: Office, after: int, wanted: LogFilter, limit: int) -> list[Positioned]:
    with office.store.read() as connection:
        return log.after(connection, after, wanted, limit=limit)


async def _live(
    office: Office, after: int, wanted: LogFilter
) -> AsyncIterator[ServerSentEventMessage]:
    silent_s = 0.0
    while not office.stopping.is_set():
        found = await asyncio.to_thread(_behind, office, after, wanted, _LIVE_LIMIT)
        for item in found:
            after = item.position
            text = msgspec.json.encode(event_out(item)).decode()
            yield ServerSentEventMessage(data=text, event="event", id=str(after))
        if found:
            silent_s = 0.0
            continue
        # The log is followed by position: who looks again misses nothing, however late it commits.
        await asyncio.sleep(_LOOK_AGAIN_S)
        silent_s += _LOOK_AGAIN_S
        if silent_s >= _STILL_HERE_S:
            silent_s = 0.0
            yield ServerSentEventMessage(comment="still here")


def _position(office: Office, cursor: str) -> int:
    """Where a cursor points; one of a history that a restore took back is gone."""
    if not cursor:
        return 0
    incarnation, _, text = cursor.partition(".")
    if not all(
        part.isascii() and part.isdecimal() and len(part) < 19 for part in (incarnation, text)
    ):
        raise ProblemError(Problem(400, "invalid-request", "the cursor is not one of ours"))
    position = int(text)
    present = office.ledger.book.incarnation
    with office.store.read() as connection:
        last, restored = log.last_position(connection), log.restored_at(connection)
    is_gone = int(incarnation) < present and restored is not None and position >= restored
    if is_gone:
        detail = "the log was restored since: read again from `next`; known ids are no news"
        more = {"next": f"{present}.{(restored or 1) - 1}"}
        raise ProblemError(Problem(410, "gone", detail, more))
    if int(incarnation) > present or position > last:
        raise ProblemError(Problem(400, "invalid-request", "the cursor is not one of ours"))
    return position


def _fed(item: FeedItem, incarnation: int) -> FeedMessage:
    try:
        body = json.loads(item.body) if item.body is not None else None
    except ValueError:
        body = None
    return FeedMessage(item.message, f"{incarnation}.{item.position}", body)


HANDLERS: list[Any] = [log_page, file_log, feed]

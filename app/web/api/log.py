"""The log in order, and live."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import msgspec
from litestar import MediaType, Request, Response, get
from litestar.params import FromPath, FromQuery
from litestar.response import ServerSentEvent, ServerSentEventMessage
from msgspec import Struct

from app.store.reading import log
from app.store.reading.log import LogFilter, Positioned
from app.telemetry.logs import without_credentials
from app.web.api.office import After, Asker, Here, Limit, Office, at, position
from app.web.auth import needs

_TAGS = ["log"]
LOOK_AGAIN_S = 0.5
STILL_HERE_S = 15.0
_LIVE_LIMIT = 200


class CauseOut(Struct):
    """Who or what was behind it."""

    kind: str
    id: str
    operator: str
    reason: str
    trace: str


class LogEvent(Struct):
    """One event; ``data`` has what was erased as "", and addresses without their query.

    ``file`` is the file's name, or what its source calls it, where the audit tells of an order.
    """

    position: int
    stream: str
    revision: int
    type: str
    at: str | None
    cause: CauseOut
    data: dict[str, Any]
    file: str = ""


class LogPage(Struct):
    """Events in order; ask again ``after`` the position ``next``."""

    items: list[LogEvent]
    next: int


@get("/log", guards=[needs("viewer")], summary="The log, in order or live", tags=_TAGS)
async def log_page(
    request: Request[Any, Any, Any],
    office: Here,
    who: Asker,
    after: After = 0,
    stream: FromQuery[str] = "",
    type: FromQuery[str] = "",  # noqa: A002 - the parameter's name is fixed
    limit: Limit = 100,
) -> Response[Any]:
    """Events behind a position. ``Accept: text/event-stream`` follows the log live."""
    wanted = LogFilter(stream=stream, type=type, sources=who.sources)
    if "text/event-stream" in request.headers.get("accept", ""):
        resumed = request.headers.get("last-event-id", "")
        start = position(resumed)
        return ServerSentEvent(_live(office, after if start is None else start, wanted))
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
    office: Here, who: Asker, file: FromPath[str], after: After = 0, limit: Limit = 100
) -> LogPage:
    """All that was recorded of one file, in order."""
    wanted = LogFilter(stream=file, sources=who.sources)
    found = _behind(office, after, wanted, limit)
    following = found[-1].position if found else after
    return LogPage([event_out(item) for item in found], following)


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
        await asyncio.sleep(LOOK_AGAIN_S)
        silent_s += LOOK_AGAIN_S
        if silent_s >= STILL_HERE_S:
            silent_s = 0.0
            yield ServerSentEventMessage(comment="still here")


HANDLERS: list[Any] = [log_page, file_log]

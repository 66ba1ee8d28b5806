"""A destination's messages in order, for those who pull: paged, waited for, or live."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Annotated, Any

import msgspec
from litestar import MediaType, Request, Response, get
from litestar.params import FromPath, FromQuery, QueryParameter
from litestar.response import ServerSentEvent, ServerSentEventMessage
from msgspec import Struct

from app.store.reading import log
from app.store.reading.log import FeedItem
from app.web.api.log import LOOK_AGAIN_S, STILL_HERE_S
from app.web.api.office import Asker, Here, Limit, Office
from app.web.auth import needs
from app.web.problems import Problem
from app.web.rest import ProblemError

_LIVE_LIMIT = 200
_LONGEST_WAIT_S = 60.0

Wait = Annotated[
    float,
    QueryParameter(
        ge=0, le=_LONGEST_WAIT_S, description="seconds to wait for a message if there is none yet"
    ),
]


class FeedMessage(Struct):
    """One message as it is sent to those that do not pull."""

    id: str
    cursor: str
    body: Any


class FeedPage(Struct):
    """Messages in order; ask again ``after`` the cursor ``next``."""

    items: list[FeedMessage]
    next: str


@get(
    "/feed/{destination:str}",
    guards=[needs("receiver")],
    summary="Messages, for pulling",
    tags=["feed"],
)
async def feed(
    request: Request[Any, Any, Any],
    office: Here,
    who: Asker,
    destination: FromPath[str],
    after: FromQuery[str] = "",
    wait: Wait = 0.0,
    limit: Limit = 100,
) -> Response[Any]:
    """A destination's messages in the order of the log, the same that are sent.

    ``Accept: text/event-stream`` follows it live. A cursor stays valid for ever, but for one from
    before a restore, which is answered with 410 and the place to read again from.
    """
    is_theirs = who.destination in {None, destination} and who.sources is None
    if not is_theirs or office.config.destination(destination) is None:
        raise ProblemError(Problem(404, "not-found"))
    is_live = "text/event-stream" in request.headers.get("accept", "")
    cursor = request.headers.get("last-event-id", "") if is_live else ""
    position = await asyncio.to_thread(_position, office, cursor or after)
    if is_live:
        return ServerSentEvent(_live(office, destination, position))
    page = await _awaited(office, destination, position, wait_s=wait, limit=limit)
    return Response(page, media_type=MediaType.JSON)


async def _awaited(
    office: Office, destination: str, position: int, *, wait_s: float, limit: int
) -> FeedPage:
    """The messages behind a position; if there are none, those that come within the wait."""
    while True:
        items, read = await asyncio.to_thread(_behind, office, destination, position, limit)
        is_end, position = read == position, read
        if items or (is_end and (wait_s <= 0 or office.stopping.is_set())):
            return FeedPage(items, f"{office.ledger.book.incarnation}.{position}")
        if not is_end:
            continue
        # The feed is followed by position: who looks again misses nothing, however late it commits.
        await asyncio.sleep(min(LOOK_AGAIN_S, wait_s))
        wait_s -= LOOK_AGAIN_S


async def _live(
    office: Office, destination: str, position: int
) -> AsyncIterator[ServerSentEventMessage]:
    silent_s = 0.0
    while not office.stopping.is_set():
        items, read = await asyncio.to_thread(_behind, office, destination, position, _LIVE_LIMIT)
        is_end, position = read == position, read
        for item in items:
            text = msgspec.json.encode(item).decode()
            yield ServerSentEventMessage(data=text, event="message", id=item.cursor)
        if items or not is_end:
            silent_s = 0.0
            continue
        await asyncio.sleep(LOOK_AGAIN_S)
        silent_s += LOOK_AGAIN_S
        if silent_s >= STILL_HERE_S:
            silent_s = 0.0
            yield ServerSentEventMessage(comment="still here")


def _behind(
    office: Office, destination: str, position: int, limit: int
) -> tuple[list[FeedMessage], int]:
    """Messages behind a position and how far the log was read for them."""
    with office.store.read() as connection:
        found, read = log.feed(connection, destination, position, limit=limit)
    incarnation = office.ledger.book.incarnation
    return [_fed(item, incarnation) for item in found], read


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


HANDLERS: list[Any] = [feed]

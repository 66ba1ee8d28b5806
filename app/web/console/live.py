"""Told to open pages: the log has moved on, or work is under way."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

from litestar import Request, get
from litestar.response import ServerSentEvent, ServerSentEventMessage

from app.store.reading import log, overview
from app.web.api.office import Office
from app.web.console import session
from app.web.console.pages import Visiting
from app.web.console.session import COOKIE, signed_in

_LOOK_AGAIN_S = 0.5
# Once in so many looks: whoever lost access is no longer told, and a silent line is kept open.
_CHECK_EVERY = 20
# Progress is no event of the log; while work runs, pages look this often.
_PROGRESS_EVERY = 4


@get("/live", guards=[signed_in("viewer")])
async def live(request: Request[Any, Any, Any], visit: Visiting) -> ServerSentEvent:
    """A line that says when to look again."""
    state, value = request.app.state, request.cookies.get(COOKIE, "")

    def is_in() -> bool:
        return session.read(state.office, state.doorkeeper, value) is not None

    return ServerSentEvent(_moves(visit.office, is_in))


async def _moves(office: Office, is_in: Any) -> AsyncIterator[ServerSentEventMessage]:
    before = (-1, -1)
    looks = 0
    while not office.stopping.is_set():
        now = await asyncio.to_thread(_seen, office)
        is_working = bool(now[1]) and looks % _PROGRESS_EVERY == 0
        if now[0] != before[0]:
            yield ServerSentEventMessage(data=str(now[0]), event="moved")
        elif now[1] != before[1] or is_working:
            yield ServerSentEventMessage(data=str(now[1]), event="working")
        before = now
        looks += 1
        if looks % _CHECK_EVERY == 0:
            if not await asyncio.to_thread(is_in):
                return
            yield ServerSentEventMessage(comment="still here")
        await asyncio.sleep(_LOOK_AGAIN_S)


def _seen(office: Office) -> tuple[int, int]:
    with office.store.read() as connection:
        running = overview.running(connection)
        return log.last_position(connection), sum(running.values())


HANDLERS: list[Any] = [live]

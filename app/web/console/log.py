"""The log, its end or any place of it; and who ordered what, and why."""

from __future__ import annotations

from typing import Any

from litestar import get
from litestar.params import FromQuery

from app.store.reading import log
from app.store.reading.log import LogFilter
from app.web.api import overview
from app.web.api.log import event_out
from app.web.api.office import moment, position
from app.web.console import slip
from app.web.console.asking import ask
from app.web.console.pages import Page, Visiting, page
from app.web.console.session import signed_in
from app.web.problems import Problem
from app.web.rest import ProblemError

_LIMIT = 100
_LAST = 2**62


@get("/log", guards=[signed_in("viewer")], sync_to_thread=True)
def log_page(
    visit: Visiting,
    before: FromQuery[str] = "",
    stream: FromQuery[str] = "",
    kind: FromQuery[str] = "",
) -> Page:
    """Events, the last first; ``before`` is a position or a time."""
    wanted = LogFilter(stream=stream, type=kind, sources=visit.who.sources)
    with visit.office.store.read() as connection:
        position = _position(connection, before)
        found = log.before(connection, position, wanted, limit=_LIMIT)
        last = log.last_position(connection)
    return page(
        visit,
        "log.html",
        events=[event_out(item) for item in found],
        last=last,
        before=before,
        stream=stream,
        kind=kind,
        kinds=sorted(slip.EVENT_WORDS),
        words=slip.event_words,
        mood=slip.mood_of,
        older=found[-1].position if len(found) == _LIMIT else 0,
    )


@get("/audit", guards=[signed_in("viewer")], sync_to_thread=True)
def audit_page(visit: Visiting, operator: FromQuery[str] = "", cursor: FromQuery[str] = "") -> Page:
    """Who ordered what, and why, the last first."""
    found = ask(overview.audit, visit.office, visit.who, operator=operator, limit=50, cursor=cursor)
    return page(visit, "audit.html", found=found, operator=operator, words=slip.event_words)


def _position(connection: Any, before: str) -> int:
    if not before:
        return _LAST
    if (place := position(before)) is not None:
        return place
    when = moment(before)
    if when is None:
        raise ProblemError(Problem(400, "invalid-request", "no position and no time"))
    return log.position_at(connection, int(when.timestamp() * 1000)) + 1


HANDLERS: list[Any] = [log_page, audit_page]

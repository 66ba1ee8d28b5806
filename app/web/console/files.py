"""Files, and the slip of each: everything that became of it, in one line of time."""

from __future__ import annotations

from typing import Any

from litestar import Request, Response, get
from litestar.params import FromPath, FromQuery

from app.store.reading import arrivals as arrivals_read
from app.web.api import artifacts, files, log
from app.web.api.arrivals import DeliveryOut, delivery_out
from app.web.console.asking import ask
from app.web.console.pages import Page, Visit, Visiting, page
from app.web.console.session import signed_in
from app.web.console.slip import timeline

STATES = (
    "received",
    "downloading",
    "transforming",
    "notifying",
    "completed",
    "waiting",
    "failed",
    "superseded",
    "ignored",
    "deleted",
    "discarded",
)
_MOST_DELIVERIES = 200
_MOST_EVENTS = 200


@get("/files", guards=[signed_in("viewer")], sync_to_thread=True)
def file_page(
    visit: Visiting,
    q: FromQuery[str] = "",
    in_state: FromQuery[str] = "",
    source: FromQuery[str] = "",
    project: FromQuery[str] = "",
    cursor: FromQuery[str] = "",
) -> Page:
    """Files that match, the last changed first."""
    found = ask(
        files.file_list,
        visit.office,
        visit.who,
        source=source,
        project=project,
        in_state=in_state if in_state in STATES else "",
        q=q,
        limit=50,
        cursor=cursor,
    )
    return page(
        visit,
        "files.html",
        found=found,
        q=q,
        in_state=in_state,
        source=source,
        project=project,
        states=STATES,
        sources=[s.name for s in visit.office.config.sources if visit.who.sees(s.name)],
    )


@get("/files/{file:str}", guards=[signed_in("viewer")], sync_to_thread=True)
def slip_page(visit: Visiting, file: FromPath[str], at: FromQuery[str] = "") -> Page:
    """The slip of one file, as it is or as it was."""
    shown = ask(files.file_one, visit.office, visit.who, file, at=at)
    told = _deliveries(visit, file)
    events = ask(log.file_log, visit.office, visit.who, file, limit=_MOST_EVENTS)
    return page(
        visit,
        "file.html",
        file=shown,
        at=at,
        deliveries=told,
        events=events,
        timeline=timeline(shown, told, events.items),
        recipes=[r.name for r in visit.office.ledger.book.configured],
    )


@get("/artifacts/{artifact:str}", guards=[signed_in("viewer")], sync_to_thread=True)
def artifact(
    request: Request[Any, Any, Any], visit: Visiting, artifact: FromPath[str]
) -> Response[Any]:
    """The bytes of an artifact: always a download, never a page of this site."""
    found: Response[Any] = ask(artifacts.artifact_bytes, request, visit.office, visit.who, artifact)
    disposition = found.headers.get("content-disposition", "")
    if disposition.startswith("inline"):
        found.headers["content-disposition"] = disposition.replace("inline", "attachment", 1)
    return found


def _deliveries(visit: Visit, file: str) -> list[DeliveryOut]:
    with visit.office.store.read() as connection:
        found = arrivals_read.about(connection, file, limit=_MOST_DELIVERIES)
    return [delivery_out(arrived) for arrived in found]


HANDLERS: list[Any] = [file_page, slip_page, artifact]

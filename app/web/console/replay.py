"""The past: a file as it was, a selection under another recipe, the rows against the log."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlencode

from litestar import get
from litestar.datastructures import State
from litestar.params import FromQuery

from app.store.reading import log
from app.web.api import files
from app.web.console.asking import ask
from app.web.console.files import STATES
from app.web.console.pages import Page, Visiting, moved, page
from app.web.console.session import PATH, signed_in


@get("/replay", guards=[signed_in("viewer")], sync_to_thread=True)
def replay_page(visit: Visiting, state: State) -> Page:
    """What may be looked at or run again, and what each of the four words means."""
    with visit.office.store.read() as connection:
        last = log.last_position(connection)
    return page(
        visit,
        "replay.html",
        last=last,
        comparison=state.comparison.seen,
        states=STATES,
        sources=[s.name for s in visit.office.config.sources if visit.who.sees(s.name)],
        recipes=[r.name for r in visit.office.ledger.book.configured],
    )


@get("/replay/file", guards=[signed_in("viewer")], sync_to_thread=True)
def then_page(visit: Visiting, q: FromQuery[str] = "", at: FromQuery[str] = "") -> Page:
    """The one file that is meant, as it was; the list where it could be several."""
    found = ask(files.file_list, visit.office, visit.who, q=q, limit=2).items
    if len(found) != 1:
        return moved(f"{PATH}/files?{urlencode({'q': q})}")
    return moved(f"{PATH}/files/{found[0].id}?{urlencode({'at': at})}")


HANDLERS: list[Any] = [replay_page, then_page]

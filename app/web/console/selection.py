"""A selection of files under another recipe: what it would make of each, then for real."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from app.store.reading import files as files_read
from app.store.reading.files import FileFilter
from app.web.api import files
from app.web.api.files import ReprocessIn
from app.web.api.orders import Preview
from app.web.console.asking import ask, made
from app.web.console.files import STATES
from app.web.console.pages import Page, Visit, page
from app.web.rest import ProblemError

_MOST = 200
_DRY = "what would happen"


@dataclass(frozen=True, slots=True)
class Line:
    """What a run would make, or has made, of one file."""

    file: str
    would: bool
    reason: str
    jobs: tuple[str, ...] = ()
    messages: tuple[str, ...] = ()


def reprocess(visit: Visit, form: Mapping[str, str]) -> Page:
    """Begin new runs for all files that match; dry unless the form says that one is sure."""
    is_dry = form.get("sure", "") != "yes"
    reason = form.get("reason", "").strip() or (_DRY if is_dry else "")
    body = made(ReprocessIn, reason=reason, recipe=form.get("recipe", ""), dry_run=is_dry)
    state = form.get("in_state", "")
    wanted = FileFilter(
        source=form.get("source", ""),
        state=state if state in STATES else "",
        q=form.get("q", ""),
        sources=visit.who.sources,
    )
    with visit.office.store.read() as connection:
        found = files_read.streams(connection, wanted, limit=_MOST + 1)
    key = form.get("key", "")
    lines = [_line(visit, stream, body, f"{key}{stream}") for stream in found[:_MOST]]
    return page(
        visit, "reprocess_many.html", lines=lines, form=form, dry=is_dry, left=len(found) > _MOST
    )


def _line(visit: Visit, stream: str, body: ReprocessIn, key: str) -> Line:
    told = "" if body.dry_run else key
    try:
        found = ask(files.file_reprocess, visit.office, visit.who, stream, body, told)
    except ProblemError as error:
        return Line(stream, would=False, reason=error.problem.detail)
    if isinstance(found, Preview):
        jobs, messages = tuple(found.jobs), tuple(found.messages)
        return Line(stream, found.would, found.reason, jobs, messages)
    return Line(stream, would=True, reason="")

"""Files: found, shown as they are or were, reprocessed, held, erased."""

from __future__ import annotations

from typing import Annotated, Any

from litestar import get, post
from litestar.params import FromPath, FromQuery, JSONBody, QueryParameter
from msgspec import Meta

from app.replay.history import state_at, state_at_time
from app.store.reading import files
from app.store.reading.files import FileFilter, Found
from app.web.api.office import (
    Asker,
    Cursor,
    Here,
    InState,
    Limit,
    Listing,
    Office,
    Reasoned,
    moment,
    paged,
    position,
    there,
)
from app.web.api.orders import Call, IdempotencyKey, Ordered, Preview, once, order, try_out
from app.web.api.shapes import Details, FileOut, file_out
from app.web.auth import Who, needs
from app.web.problems import Problem
from app.web.rest import ProblemError
from domain.commands import EraseFile, HoldFile, ReleaseFile, Reprocess
from domain.summary import file_state

_MOST_ATTEMPTS = 2000
_TAGS = ["files"]
At = Annotated[str, QueryParameter(max_length=64, description="a position of the log, or a time")]


class ReprocessIn(Reasoned, forbid_unknown_fields=True):
    """Which version (else the newest), under which recipe (else the one that matches now)."""

    version: Annotated[str, Meta(max_length=2048)] = ""
    recipe: Annotated[str, Meta(max_length=200)] = ""
    dry_run: bool = False


@get("/files", guards=[needs("viewer")], sync_to_thread=True, summary="Files", tags=_TAGS)
def file_list(
    office: Here,
    who: Asker,
    source: FromQuery[str] = "",
    file_id: FromQuery[str] = "",
    project: FromQuery[str] = "",
    in_state: InState = "",
    q: FromQuery[str] = "",
    limit: Limit = 50,
    cursor: Cursor = "",
) -> Listing[FileOut]:
    """Files that match, the last changed first. ``q`` is part of a name or any whole id."""
    wanted = FileFilter(
        source=source,
        file_id=file_id,
        project=project,
        state=in_state,
        q=q,
        sources=who.sources,
    )
    details = Details(office.ledger.book.recipes)
    with office.store.read() as connection:
        return paged(
            limit,
            cursor,
            lambda ask: files.listed(connection, wanted, ask),
            lambda found: file_out(found, details),
        )


@get(
    "/files/{file:str}", guards=[needs("viewer")], sync_to_thread=True, summary="A file", tags=_TAGS
)
def file_one(office: Here, who: Asker, file: FromPath[str], at: At = "") -> FileOut:
    """A file with its versions, jobs, artifacts and messages; with ``at`` as it was then."""
    found = visible(office, who, file)
    if at:
        return file_out(
            _as_of(office, found, at), Details(office.ledger.book.recipes, is_whole=True)
        )
    works = [*found.file.jobs, *found.file.messages]
    with office.store.read() as connection:
        tries = files.attempts(connection, works, limit=_MOST_ATTEMPTS)
    return file_out(found, Details(office.ledger.book.recipes, tries, is_whole=True))


@post(
    "/files/{file:str}/reprocess",
    guards=[needs("operator")],
    status_code=200,
    sync_to_thread=True,
    summary="A new run under another recipe",
    tags=_TAGS,
)
def file_reprocess(
    office: Here,
    who: Asker,
    file: FromPath[str],
    data: JSONBody[ReprocessIn],
    key: IdempotencyKey = "",
) -> Ordered | Preview:
    """Begin a new run; refused where the recipe has not changed. A dry run names what it makes."""
    found = visible(office, who, file)
    command = Reprocess(
        stream=found.id,
        cause=who.cause(data.reason),
        version=data.version,
        recipe=_digest_of(office, data.recipe),
    )
    if data.dry_run:
        return try_out(office, found, command)
    call = Call(f"reprocess {found.id}", data, key)
    return once(office, who, call, lambda: order(office, command), Ordered)


@post(
    "/files/{file:str}/hold",
    guards=[needs("operator")],
    status_code=200,
    sync_to_thread=True,
    summary="Protect from erasure",
    tags=_TAGS,
)
def file_hold(
    office: Here,
    who: Asker,
    file: FromPath[str],
    data: JSONBody[Reasoned],
    key: IdempotencyKey = "",
) -> Ordered:
    """Until it is released, the file cannot be erased."""
    command = HoldFile(stream=visible(office, who, file).id, cause=who.cause(data.reason))
    return once(
        office, who, Call(f"hold {file}", data, key), lambda: order(office, command), Ordered
    )


@post(
    "/files/{file:str}/release",
    guards=[needs("operator")],
    status_code=200,
    sync_to_thread=True,
    summary="Lift the hold",
    tags=_TAGS,
)
def file_release(
    office: Here,
    who: Asker,
    file: FromPath[str],
    data: JSONBody[Reasoned],
    key: IdempotencyKey = "",
) -> Ordered:
    """The file may be erased again."""
    command = ReleaseFile(stream=visible(office, who, file).id, cause=who.cause(data.reason))
    call = Call(f"release {file}", data, key)
    return once(office, who, call, lambda: order(office, command), Ordered)


@post(
    "/files/{file:str}/erase",
    guards=[needs("admin")],
    status_code=200,
    sync_to_thread=True,
    summary="Remove content, names and message bodies",
    tags=_TAGS,
)
def file_erase(
    office: Here,
    who: Asker,
    file: FromPath[str],
    data: JSONBody[Reasoned],
    key: IdempotencyKey = "",
) -> Ordered:
    """Receipts, order and chain stay; whoever had the file is told. There is no way back."""
    command = EraseFile(stream=visible(office, who, file).id, cause=who.cause(data.reason))
    call = Call(f"erase {file}", data, key)
    return once(office, who, call, lambda: order(office, command), Ordered)


def visible(office: Office, who: Who, stream: str) -> Found:
    """The file of this id; one of a source that they may not see is not there for them."""
    with office.store.read() as connection:
        found = there(files.one(connection, stream))
    return there(found if who.sees(found.file.source) else None)


def _as_of(office: Office, found: Found, at: str) -> Found:
    place = position(at)
    if place is not None:
        file = state_at(office.store, found.id, place)
    else:
        when = moment(at)
        if when is None:
            raise ProblemError(Problem(400, "invalid-request", "at: no position and no time"))
        file = state_at_time(office.store, found.id, int(when.timestamp() * 1000))
    there(file if file.revision else None)
    return Found(found.id, file_state(file), file)


def _digest_of(office: Office, recipe: str) -> str:
    if not recipe:
        return ""
    book = office.ledger.book
    named = (r.digest for r in book.configured if recipe in {r.name, r.digest})
    digest = next(named, recipe if recipe in book.recipes else "")
    if not digest:
        raise ProblemError(Problem(422, "invalid-request", "recipe: there is none of that name"))
    return digest


HANDLERS: list[Any] = [
    file_list,
    file_one,
    file_reprocess,
    file_hold,
    file_release,
    file_erase,
]

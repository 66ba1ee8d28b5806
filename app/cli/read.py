"""``files``, ``events``, ``log``, ``deliveries``, ``jobs``, ``messages``, ``audit``: the lists."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Any

import typer

from app.cli import words
from app.cli.client import Api
from app.cli.held import hindrance, hindrances
from app.cli.known import filters_or_exit
from app.cli.views import Column, View, listed, reading, state, text, time

if TYPE_CHECKING:  # --help needs none of it
    from rich.console import RenderableType

LimitOption = Annotated[int, typer.Option("--limit", metavar="N", min=1, max=10_000)]
CursorOption = Annotated[
    str, typer.Option("--cursor", metavar="CURSOR", help="`next` of the JSON before.")
]
SourceOption = Annotated[str, typer.Option("--source", metavar="NAME")]
StateOption = Annotated[str, typer.Option("--state", metavar="STATE")]
DestinationOption = Annotated[str, typer.Option("--destination", metavar="NAME")]
ReferenceOption = Annotated[
    str, typer.Option("--reference", metavar="ID", help="The receiver's own id.")
]


def place(row: dict[str, Any]) -> str:
    """A file as its source names it."""
    return f"{row.get('source', '')}/{row.get('file_id') or '(erased)'}"


def progress(told: dict[str, Any] | None) -> str:
    """How far a running piece of work is."""
    if not told:
        return ""
    done, total = told.get("done") or 0, told.get("total")
    return f"{100 * done // total} %" if total else words.size(done)


def _why(row: dict[str, Any]) -> str:
    """Why a file is as it is: the error of the newest version that has one."""
    return next((version["error"] for version in row["versions"] if version["error"]), "")


def _cause(row: dict[str, Any]) -> str:
    """Who or what was behind an event."""
    cause = row["cause"]
    return f"{cause['kind']} {cause['operator'] or cause['id']}".strip()


def _subject(row: dict[str, Any]) -> str:
    """What an order was about: the part, job, message or token that it names, or the file."""
    data = row["data"]
    named = (data.get(key) for key in ("what", "job", "message", "token", "delivery", "digest"))
    subject = next((str(found) for found in named if found), row["stream"])
    return f"{words.short(row['file'])}  {subject}" if row["file"] else subject


FILES = (
    Column("name", lambda row, _: words.short(row["name"])),
    Column("file", lambda row, _: place(row), is_whole=True),
    state(),
    text("current", "current"),
    Column("why", lambda row, _: _why(row)),
    time("changed", "changed_at"),
    text("id", "id", is_whole=True),
)
EVENTS = (
    time("accepted", "accepted_at"),
    text("source", "source"),
    text("type", "type"),
    text("event", "event_id"),
    state(),
    Column("deliveries", lambda row, _: str(len(row["delivery_ids"])), is_number=True),
    text("why", "error"),
    text("version", "version"),
    text("file", "file_id"),
    text("receipt", "receipt", is_whole=True),
)
LOG = (
    Column("position", lambda row, _: str(row["position"]), is_number=True, is_whole=True),
    time("at", "at"),
    text("event", "type", is_whole=True),
    Column("by", lambda row, _: _cause(row)),
    text("stream", "stream", is_whole=True),
)
DELIVERIES = (
    time("received", "received_at"),
    text("source", "source"),
    state("verdict", "verdict"),
    text("why", "reason"),
    text("event", "event_id"),
    text("delivery", "delivery_id"),
    text("key", "key_id", is_whole=True),
    Column("times", lambda row, _: str(row["count"]), is_number=True),
    text("settled", "settled"),
    text("id", "id", is_whole=True),
)
JOBS = (
    text("id", "id", is_whole=True),
    text("kind", "kind"),
    text("name", "name"),
    state(),
    Column("tries", lambda row, _: str(row["attempts_counted"]), is_number=True),
    time("due", "due_at"),
    Column("progress", lambda row, _: progress(row["progress"]), is_number=True),
    text("why", "error"),
)
MESSAGES = (
    text("id", "id", is_whole=True),
    text("destination", "destination"),
    text("type", "type"),
    state(),
    Column("tries", lambda row, _: str(row["attempts_counted"]), is_number=True),
    time("due", "due_at"),
    text("reference", "reference"),
    text("why", "error"),
)
AUDIT = (
    time("at", "at"),
    Column("who", lambda row, _: row["cause"]["operator"] or row["cause"]["kind"]),
    text("did", "type"),
    Column("to", lambda row, _: _subject(row), is_whole=True),
    Column("why", lambda row, _: row["cause"]["reason"] or row["data"].get("reason", "")),
)


@reading
def files(
    api: Api,
    q: Annotated[str, typer.Argument(metavar="[TEXT]", help="Part of a name, or an id.")] = "",
    source: SourceOption = "",
    file_id: Annotated[str, typer.Option("--file-id", metavar="ID")] = "",
    project: Annotated[str, typer.Option("--project", metavar="ID")] = "",
    state: StateOption = "",
    limit: LimitOption = 50,
    cursor: CursorOption = "",
) -> View:
    """List files: the last changed first, by name, id, project or state."""
    found = api.page(
        "/files",
        limit=limit,
        cursor=cursor,
        q=q,
        source=source,
        file_id=file_id,
        project=project,
        state=state,
    )
    filters_or_exit(api, found, "files", source=source, state=state)
    return listed(found, FILES, "No file matches.")


@reading
def events(
    api: Api,
    source: SourceOption = "",
    event_id: Annotated[str, typer.Option("--event-id", metavar="ID")] = "",
    state: StateOption = "",
    limit: LimitOption = 50,
    cursor: CursorOption = "",
) -> View:
    """List what sources told, and what became of it."""
    query = {"source": source, "event_id": event_id, "state": state}
    found = api.page("/source-events", limit=limit, cursor=cursor, **query)
    filters_or_exit(api, found, "events", source=source)
    return listed(found, EVENTS, "No source has told anything that matches.")


@reading
def log(
    api: Api,
    after: Annotated[
        str, typer.Option("--after", metavar="POSITION", help="Begin behind it; 0 is the start.")
    ] = "",
    stream: Annotated[str, typer.Option("--stream", metavar="ID", help="A file's id.")] = "",
    type_: Annotated[str, typer.Option("--type", metavar="EVENT")] = "",
    limit: LimitOption = 50,
) -> View:
    """Read the log in order, each fact with who or what caused it; without --after, its end."""
    if not (after or stream or type_):
        after = str(max(0, int(api.get("/stats")["position"]) - limit))
    found = api.page("/log", limit=limit, by="after", after=after, stream=stream, type=type_)
    return listed(found, LOG, "Nothing there matches.")


@reading
def deliveries(
    api: Api,
    source: SourceOption = "",
    verdict: Annotated[str, typer.Option("--verdict", metavar="VERDICT")] = "",
    event_id: Annotated[str, typer.Option("--event-id", metavar="ID")] = "",
    limit: LimitOption = 50,
    cursor: CursorOption = "",
) -> View:
    """List deliveries with their verdict: accepted, duplicate, conflict, rejected and so on."""
    query = {"source": source, "verdict": verdict, "event_id": event_id}
    found = api.page("/deliveries", limit=limit, cursor=cursor, **query)
    filters_or_exit(api, found, "deliveries", source=source, verdict=verdict)
    return listed(found, DELIVERIES, "No delivery matches.")


@reading
def jobs(
    api: Api,
    state: StateOption = "",
    kind: Annotated[str, typer.Option("--kind", metavar="KIND")] = "",
    name: Annotated[str, typer.Option("--name", metavar="NAME", help="Of a step.")] = "",
    source: SourceOption = "",
    limit: LimitOption = 50,
    cursor: CursorOption = "",
) -> View:
    """List jobs: downloads and transformations with their state and last error."""
    query = {"state": state, "kind": kind, "name": name, "source": source}
    found = api.page("/jobs", limit=limit, cursor=cursor, **query)
    filters_or_exit(api, found, "jobs", state=state, kind=kind, source=source)
    return listed(found, JOBS, "No job matches.")


@reading
def messages(
    api: Api,
    destination: DestinationOption = "",
    state: StateOption = "",
    reference: ReferenceOption = "",
    limit: LimitOption = 50,
    cursor: CursorOption = "",
) -> View:
    """List messages to destinations with their state and last error."""
    query = {"destination": destination, "state": state, "reference": reference}
    found = api.page("/messages", limit=limit, cursor=cursor, **query)
    filters_or_exit(api, found, "messages", destination=destination, state=state)
    view = listed(found, MESSAGES, "No message matches.")
    held = hindrances(api, found["items"])

    def shown(moment: words.Moment) -> Iterator[RenderableType]:
        yield from view.shown(moment)
        parts = {each.part: each for row in found["items"] if (each := hindrance(row, held))}
        yield from (each.told(moment) for each in parts.values())

    return View(found, shown)


@reading
def audit(
    api: Api,
    by: Annotated[str, typer.Option("--by", metavar="NAME", help="An operator's name.")] = "",
    since: Annotated[str, typer.Option("--since", metavar="TIME")] = "",
    limit: LimitOption = 50,
    cursor: CursorOption = "",
) -> View:
    """List who did what, when and why."""
    found = api.page("/audit", limit=limit, cursor=cursor, operator=by, since=since)
    return listed(found, AUDIT, "No operator has done anything that matches.")

"""Files, found and whole: the row of each holds its state, leases lay "running" over it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import sqlalchemy as sa

from app.store import tables as t
from app.store.codec import decode_file
from app.store.projections import folded
from app.store.reading.pages import Ask, Page, select_page
from domain.states import File

SHORTEST_PART = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class FileFilter:
    """Which files are wanted; ``sources`` is what the one who asks may see, ``None`` for all."""

    source: str = ""
    file_id: str = ""
    project: str = ""
    state: str = ""
    q: str = ""
    sources: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a running piece of work is."""

    work: str
    kind: str
    owner: str
    attempt: int
    since_ms: int
    done: int
    total: int | None


@dataclass(frozen=True, slots=True)
class Attempt:
    """One try, as the history keeps it. ``exchange`` is what went over the wire, encoded."""

    work: str
    number: int
    owner: str
    started_ms: int
    ended_ms: int | None
    outcome: str
    error: str
    exchange: bytes | None


@dataclass(frozen=True, slots=True)
class Found:
    """A file's state, its row's word for it, and which of its work runs."""

    id: str
    state: str
    file: File
    running: dict[str, Progress] = field(default_factory=dict)


def listed(connection: sa.Connection, wanted: FileFilter, ask: Ask) -> Page[Found]:
    """The files that match, the last changed first."""
    columns = t.files.c.stream, t.files.c.state, t.files.c.body, t.files.c.changed_ms
    query = _where(sa.select(*columns), wanted)
    page = select_page(connection, query, (t.files.c.changed_ms, t.files.c.stream), ask)
    running = _running(connection, [row.stream for row in page.items])
    found = [
        Found(row.stream, row.state, decode_file(row.body), running.get(row.stream, {}))
        for row in page.items
    ]
    return Page(found, page.next)


def one(connection: sa.Connection, stream: str) -> Found | None:
    """One file by its id."""
    columns = t.files.c.stream, t.files.c.state, t.files.c.body
    row = connection.execute(sa.select(*columns).where(t.files.c.stream == stream)).first()
    if row is None:
        return None
    running = _running(connection, [stream])
    return Found(row.stream, row.state, decode_file(row.body), running.get(stream, {}))


def streams(connection: sa.Connection, wanted: FileFilter, *, limit: int) -> list[str]:
    """The ids of files that match, for orders by filter."""
    query = _where(sa.select(t.files.c.stream), wanted).order_by(t.files.c.stream).limit(limit)
    return list(connection.execute(query).scalars())


def names(connection: sa.Connection, ids: Iterable[str]) -> dict[str, str]:
    """What people call these files: by name, else as the source does; erased ones are left out."""
    columns = t.files.c.stream, t.files.c.source, t.files.c.file_id, t.files.c.name
    query = sa.select(*columns).where(t.files.c.stream.in_(list(ids)))
    found = {
        row.stream: row.name or (f"{row.source}/{row.file_id}" if row.file_id else "")
        for row in connection.execute(query)
    }
    return {stream: name for stream, name in found.items() if name}


def attempts(
    connection: sa.Connection, works: Iterable[str], *, limit: int
) -> dict[str, list[Attempt]]:
    """The tries of these jobs and messages, the first first."""
    columns = [t.attempts.c[name] for name in Attempt.__dataclass_fields__]
    query = sa.select(*columns).where(t.attempts.c.work.in_(list(works)))
    found: dict[str, list[Attempt]] = {}
    for row in connection.execute(query.order_by(t.attempts.c.id).limit(limit)):
        found.setdefault(row.work, []).append(Attempt(*row))
    return found


def _where(query: sa.Select[Any], wanted: FileFilter) -> sa.Select[Any]:
    for column, value in (
        (t.files.c.source, wanted.source),
        (t.files.c.file_id, wanted.file_id),
        (t.files.c.project, wanted.project),
    ):
        query = query.where(column == value) if value else query
    if wanted.sources is not None:
        query = query.where(t.files.c.source.in_(wanted.sources))
    if wanted.state:
        query = query.where(_in_state(wanted.state))
    return query.where(_matches(wanted.q)) if wanted.q else query


def _in_state(state: str) -> sa.ColumnElement[bool]:
    # A running download is a lease, of which the file's row knows nothing.
    leased = sa.exists().where(t.leases.c.stream == t.files.c.stream, t.leases.c.kind == "download")
    if state == "downloading":
        return sa.and_(t.files.c.state == "received", leased)
    if state == "received":
        return sa.and_(t.files.c.state == "received", ~leased)
    return t.files.c.state == state


def _matches(q: str) -> sa.ColumnElement[bool]:
    """Part of a name, or the whole of anything that names a file."""
    text = q.strip()
    source, _, file_id = text.partition("/")
    of_message = sa.select(t.messages.c.stream).where(
        sa.or_(t.messages.c.id == text, t.messages.c.reference == text)
    )
    event = "evt_" + text.removeprefix("rcp_")
    of_receipt = sa.select(t.receipts.c.stream).where(
        sa.or_(t.receipts.c.event == event, t.receipts.c.event_id == text)
    )
    wholes = [
        t.files.c.stream == text,
        t.files.c.file_id == text,
        t.files.c.project == text,
        sa.and_(t.files.c.source == source, t.files.c.file_id == file_id),
        t.files.c.stream.in_(of_message),
        t.files.c.stream.in_(of_receipt),
        t.files.c.stream.in_(sa.select(t.jobs.c.stream).where(t.jobs.c.id == text)),
    ]
    if len(text) >= SHORTEST_PART:
        wholes.append(t.files.c.folded_name.contains(folded(text), autoescape=True))
    return sa.or_(*wholes)


def _running(connection: sa.Connection, ids: list[str]) -> dict[str, dict[str, Progress]]:
    query = sa.select(t.leases).where(t.leases.c.stream.in_(ids))
    found: dict[str, dict[str, Progress]] = {}
    for row in connection.execute(query):
        progress = Progress(
            work=row.id,
            kind=row.kind,
            owner=row.owner,
            attempt=row.attempt,
            since_ms=row.started_ms,
            done=row.done,
            total=row.total,
        )
        found.setdefault(row.stream, {})[row.id] = progress
    return found

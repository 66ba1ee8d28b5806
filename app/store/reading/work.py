"""Jobs and messages as rows: lists, dead letters by cause, the bytes of a message."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, Literal

import sqlalchemy as sa
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.functions import FunctionElement

from app.store import tables as t
from app.store.reading.pages import Ask, Page, select_page

WorkTable = Literal["job", "message"]


class _place_of(FunctionElement[int]):  # noqa: N801 - it reads as a function
    """Where bytes stand in other bytes, from 1; 0 if they do not."""

    type = sa.Integer()
    inherit_cache = True


@compiles(_place_of)
def _instr(element: _place_of, compiler: Any, **more: Any) -> str:
    return f"instr({compiler.process(element.clauses, **more)})"


@compiles(_place_of, "postgresql")
def _position(element: _place_of, compiler: Any, **more: Any) -> str:
    return f"pg_catalog.position({compiler.process(element.clauses, **more)})"


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkFilter:
    """Which jobs or messages are wanted; ``name`` is a step's, a download's or a destination's."""

    state: str = ""
    kind: str = ""
    name: str = ""
    source: str = ""
    stream: str = ""
    reference: str = ""
    error: str = ""
    answer: str = ""
    since_ms: int = 0
    until_ms: int = 0
    ended_before_ms: int = 0
    ids: tuple[str, ...] = ()
    sources: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True)
class Work:
    """One row of either table. ``running`` says that a lease lies over it."""

    id: str
    stream: str
    source: str
    version: str
    kind: str
    name: str
    state: str
    ordered_ms: int
    due_ms: int
    ended_ms: int
    attempts: int
    run: int
    error: str
    is_running: bool
    done: int
    total: int | None
    required: bool = True
    type: str = ""
    sequence: int = 0
    reference: str = ""


@dataclass(frozen=True, slots=True)
class Cause:
    """Dead letters that gave up for the same reason."""

    kind: WorkTable
    name: str
    error: str
    count: int
    oldest_ms: int
    newest_ms: int


def jobs(connection: sa.Connection, wanted: WorkFilter, ask: Ask) -> Page[Work]:
    """The jobs that match, the last ordered first."""
    return _page(connection, "job", wanted, ask)


def messages(connection: sa.Connection, wanted: WorkFilter, ask: Ask) -> Page[Work]:
    """The messages that match, the last ordered first."""
    return _page(connection, "message", wanted, ask)


def one(connection: sa.Connection, kind: WorkTable, work: str) -> Work | None:
    """One job or message by its id."""
    row = connection.execute(_query(kind, WorkFilter(ids=(work,)))).first()
    return None if row is None else _work(kind, row)


def some(
    connection: sa.Connection, kind: WorkTable, wanted: WorkFilter, *, limit: int
) -> list[Work]:
    """Those that match, the first ordered first: for orders by filter."""
    table = _table(kind)
    query = _query(kind, wanted).order_by(table.c.ordered_ms, table.c.id).limit(limit)
    return [_work(kind, row) for row in connection.execute(query)]


def selection(
    connection: sa.Connection, wanted: WorkFilter, after: tuple[int, str], *, limit: int
) -> list[Work]:
    """The next messages that match behind this moment and id, the first ordered first."""
    keys = t.messages.c.ordered_ms, t.messages.c.id
    behind = sa.tuple_(*keys) > sa.tuple_(*(sa.literal(part) for part in after))
    query = _query("message", wanted).where(behind).order_by(*keys).limit(limit)
    return [_work("message", row) for row in connection.execute(query)]


def counts(connection: sa.Connection, wanted: WorkFilter) -> dict[tuple[str, str], int]:
    """How many messages match, by destination and state."""
    names = t.messages.c.destination, t.messages.c.state
    query = _query("message", wanted).with_only_columns(*names, sa.func.count())
    query = query.group_by(*names).order_by(*names)
    return {(place, state): count for place, state, count in connection.execute(query)}


def causes(
    connection: sa.Connection, sources: tuple[str, ...] | None, *, needed: bool = False
) -> list[Cause]:
    """All dead letters, grouped by what gave up and why, the largest group first.

    ``needed`` leaves out the steps that their recipe can do without.
    """
    found: list[Cause] = []
    kinds: tuple[WorkTable, ...] = ("job", "message")
    for kind in kinds:
        table = _table(kind)
        name = table.c.name if kind == "job" else table.c.destination
        number = sa.func.count().label("number")
        query = (
            sa.select(
                name,
                table.c.error,
                number,
                sa.func.min(table.c.ended_ms),
                sa.func.max(table.c.ended_ms),
            )
            .where(table.c.state == "dead")
            .group_by(name, table.c.error)
            .order_by(number.desc(), name, table.c.error)
            .limit(500)
        )
        if sources is not None:
            query = query.where(table.c.source.in_(sources))
        if needed and kind == "job":
            query = query.where(table.c.required)
        found += [Cause(kind, *row) for row in connection.execute(query)]
    return sorted(found, key=lambda cause: -cause.count)


def body(connection: sa.Connection, message: str) -> bytes | None:
    """The exact bytes of a message; ``None`` once they were removed."""
    query = sa.select(t.bodies.c.data).where(t.bodies.c.message == message)
    found = connection.execute(query).scalar()
    return None if found is None else bytes(found)


def _page(connection: sa.Connection, kind: WorkTable, wanted: WorkFilter, ask: Ask) -> Page[Work]:
    table = _table(kind)
    query = _query(kind, wanted)
    page = select_page(connection, query, (table.c.ordered_ms, table.c.id), ask)
    return Page([_work(kind, row) for row in page.items], page.next)


def _table(kind: WorkTable) -> sa.Table:
    return t.jobs if kind == "job" else t.messages


def _query(kind: WorkTable, wanted: WorkFilter) -> sa.Select[Any]:
    table = _table(kind)
    lease = t.leases
    query = sa.select(table, lease.c.id.label("lease"), lease.c.done, lease.c.total).select_from(
        table.outerjoin(lease, lease.c.id == table.c.id)
    )
    name = table.c.name if kind == "job" else table.c.destination
    pairs = [(name, wanted.name), (table.c.source, wanted.source), (table.c.error, wanted.error)]
    if kind == "job":
        pairs.append((table.c.kind, wanted.kind))
    else:
        pairs.append((table.c.reference, wanted.reference))
    pairs.append((table.c.stream, wanted.stream))
    for column, value in pairs:
        query = query.where(column == value) if value else query
    if wanted.answer:
        query = query.where(_has_answer(table, wanted.answer).exists())
    if wanted.since_ms:
        query = query.where(table.c.ordered_ms >= wanted.since_ms)
    if wanted.until_ms:
        query = query.where(table.c.ordered_ms < wanted.until_ms)
    if wanted.ended_before_ms:
        query = query.where(table.c.ended_ms < wanted.ended_before_ms)
    if wanted.ids:
        query = query.where(table.c.id.in_(wanted.ids))
    if wanted.sources is not None:
        query = query.where(table.c.source.in_(wanted.sources))
    return query.where(_in_state(table, wanted.state)) if wanted.state else query


def _has_answer(table: sa.Table, text: str) -> sa.Select[Any]:
    """The tries of the enclosing query's work in whose record this text stands."""
    # As it stands in JSON: a quotation mark in an answer has a stroke before it there.
    wanted = json.dumps(text, ensure_ascii=False)[1:-1]
    tries = sa.select(t.attempts.c.id).where(t.attempts.c.work == table.c.id)
    return tries.where(_place_of(t.attempts.c.exchange, wanted.encode()) > 0)


def _in_state(table: sa.Table, state: str) -> sa.ColumnElement[bool]:
    is_open = table.c.state.in_(("ready", "waiting", "pending", "unclear"))
    leased = t.leases.c.id.is_not(None)
    if state in {"running", "sending"}:
        return sa.and_(is_open, leased)
    return sa.and_(table.c.state == state, sa.or_(~is_open, ~leased))


def _work(kind: WorkTable, row: sa.Row[Any]) -> Work:
    is_job = kind == "job"
    is_running = row.lease is not None and row.state in {"ready", "waiting", "pending", "unclear"}
    return Work(
        id=row.id,
        stream=row.stream,
        source=row.source,
        version=row.version,
        kind=row.kind if is_job else "message",
        name=row.name if is_job else row.destination,
        state=("running" if is_job else "sending") if is_running else row.state,
        ordered_ms=row.ordered_ms,
        due_ms=row.due_ms,
        ended_ms=row.ended_ms,
        attempts=row.attempts,
        run=row.run,
        error=row.error,
        is_running=is_running,
        done=row.done or 0,
        total=row.total,
        required=row.required if is_job else True,
        type="" if is_job else row.type,
        sequence=0 if is_job else row.sequence,
        reference="" if is_job else row.reference,
    )

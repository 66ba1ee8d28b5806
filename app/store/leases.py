"""A worker's right to a piece of work for a time: claimed, renewed, ended, lapsed.

The row of the work decides: a claim locks it, finds it open and due, and writes the lease in the
same transaction. Every later write names the lease's incarnation and epoch; one that names an
older epoch changes nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, Literal

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql, sqlite

from app.store import rows, slots
from app.store import tables as t

WorkKind = Literal["download", "transform", "message"]


@dataclass(frozen=True, slots=True)
class Lease:
    """A claim. ``attempt`` counts from 1, ``until_ms`` is on the database's clock."""

    id: str
    kind: WorkKind
    stream: str
    scope: str
    incarnation: int
    epoch: int
    owner: str
    started_ms: int
    until_ms: int
    attempt: int


_COLUMNS = [t.leases.c[name] for name in Lease.__dataclass_fields__]


@dataclass(frozen=True, slots=True)
class Open:
    """A piece of work that is open and due, as its row has it."""

    id: str
    kind: WorkKind
    stream: str
    scope: str
    epoch: int
    attempts: int


@dataclass(frozen=True, slots=True)
class Hold:
    """Who claims, and for how long."""

    owner: str
    incarnation: int
    now_ms: int
    lease_ms: int


# Built once: a claim is made for each piece of work, and building a statement costs more than it.
_JOB = (
    sa.select(
        *(t.jobs.c[name] for name in ("stream", "epoch", "attempts", "source", "kind", "name"))
    )
    .where(t.jobs.c.id == sa.bindparam("work"), t.OPEN_JOBS, ~t.jobs.c.asked)
    .where(t.jobs.c.due_ms <= sa.bindparam("now_ms"))
    .with_for_update(skip_locked=True)
)
_MESSAGE = (
    sa.select(*(t.messages.c[name] for name in ("stream", "epoch", "attempts", "destination")))
    .where(t.messages.c.id == sa.bindparam("work"), t.OPEN_MESSAGES)
    .where(t.messages.c.due_ms <= sa.bindparam("now_ms"))
    .with_for_update(skip_locked=True)
)
_OF = (
    sa.select(*_COLUMNS)
    .where(t.leases.c.id.in_(sa.bindparam("works", expanding=True)))
    .with_for_update()
)
_STREAMS: sa.BindParameter[Any] = sa.bindparam("streams", expanding=True)
_LOCK_OPEN = tuple(
    sa.select(table.c.id)
    .where(table.c.stream.in_(_STREAMS))
    .where(states)
    .order_by(table.c.id)
    .with_for_update()
    for table, states in ((t.jobs, t.OPEN_JOBS), (t.messages, t.OPEN_MESSAGES))
)
_IN_FLIGHT = sa.select(t.leases.c.stream, t.leases.c.id).where(t.leases.c.stream.in_(_STREAMS))
_END = t.leases.delete().where(t.leases.c.id == sa.bindparam("work"))


def open_job(connection: sa.Connection, job: str, now_ms: int) -> Open | None:
    """A job that is open and due, its row locked unless another works on it just now."""
    found = rows.fetch(connection, _JOB, {"work": job, "now_ms": now_ms})
    if not found:
        return None
    stream, epoch, attempts, source, kind, name = found[0]
    return Open(job, kind, stream, scope_of(kind, source, name), epoch, attempts)


def open_message(connection: sa.Connection, message: str, now_ms: int) -> Open | None:
    """A message that is open and due, its row locked unless another works on it just now."""
    found = rows.fetch(connection, _MESSAGE, {"work": message, "now_ms": now_ms})
    if not found:
        return None
    stream, epoch, attempts, destination = found[0]
    return Open(message, "message", stream, f"destination:{destination}", epoch, attempts)


def take(connection: sa.Connection, work: Open, hold: Hold) -> rows.Asked[Lease | None]:
    """Take work whose row this transaction has locked, if nobody has a lease on it."""
    lease = Lease(
        id=work.id,
        kind=work.kind,
        stream=work.stream,
        scope=work.scope,
        incarnation=hold.incarnation,
        epoch=work.epoch + 1,
        owner=hold.owner,
        started_ms=hold.now_ms,
        until_ms=hold.now_ms + hold.lease_ms,
        attempt=work.attempts + 1,
    )
    values = {name: getattr(lease, name) for name in Lease.__dataclass_fields__}
    # The lease of another stands in the way of ours: there is one for a piece of work, or none.
    row_of_ours = {"done": 0, "total": None, **values}
    taken = rows.ask(connection, _insert(connection.dialect.name), row_of_ours)
    return lambda: lease if taken() else None


def scope_of(kind: WorkKind, source: str, name: str) -> str:
    """What limits a job: its source while it downloads, else its step."""
    return f"source:{source}" if kind == "download" else f"step:{name}"


@cache
def _insert(dialect: str) -> sa.Executable:
    insert = sqlite.insert if dialect == "sqlite" else postgresql.insert
    free = insert(t.leases).on_conflict_do_nothing(index_elements=["id"])
    return free.returning(t.leases.c.id)


def renew(
    connection: sa.Connection, lease: Lease, hold: Hold, done: int, total: int | None
) -> bool:
    """Prolong the lease and note the progress; false for a zombie, whose lease is another's."""
    statement = (
        t.leases.update()
        .where(_is_same(lease))
        .values(until_ms=hold.now_ms + hold.lease_ms, done=done, total=total)
    )
    return connection.execute(statement).rowcount == 1


def recalled(connection: sa.Connection, jobs: Iterable[str]) -> frozenset[str]:
    """Those of the jobs that were asked to stop."""
    query = sa.select(t.jobs.c.id).where(t.jobs.c.id.in_(list(jobs)), t.jobs.c.asked)
    return frozenset(connection.execute(query).scalars())


def of(connection: sa.Connection, works: Sequence[str]) -> rows.Asked[dict[str, Lease]]:
    """The leases on these pieces of work, locked until the transaction ends."""
    if not works:
        return dict
    found = rows.ask(connection, _OF, {"works": list(works)})
    return lambda: {row[0]: Lease(*row) for row in found()}


def in_flight(
    connection: sa.Connection, streams: Iterable[str]
) -> rows.Asked[dict[str, frozenset[str]]]:
    """What is under a lease in each of these streams.

    The open work of the streams is locked first: a claim that is under way is waited for, and
    none can begin before the transaction ends.
    """
    wanted = list(streams)
    if connection.dialect.name != "sqlite":
        for lock in _LOCK_OPEN:
            rows.ask(connection, lock, {"streams": wanted})
    found = rows.ask(connection, _IN_FLIGHT, {"streams": wanted})

    def answer() -> dict[str, frozenset[str]]:
        works: dict[str, set[str]] = {}
        for stream, work in found():
            works.setdefault(stream, set()).add(work)
        return {stream: frozenset(each) for stream, each in works.items()}

    return answer


def end(connection: sa.Connection, leases: Iterable[Lease]) -> None:
    """Give the leases up."""
    ended = list(leases)
    ids = sorted(lease.id for lease in ended)
    rows.write(connection, _END, [{"work": each} for each in ids])
    if connection.dialect.name != "sqlite":
        told = [(lease.scope, lease.id) for lease in ended if lease.kind == "message"]
        slots.end(connection, told)


def lapsed(connection: sa.Connection, now_ms: int, *, limit: int) -> list[Lease]:
    """Leases whose time is over."""
    query = sa.select(*_COLUMNS).where(t.leases.c.until_ms < now_ms).limit(limit)
    return [Lease(*row) for row in connection.execute(query)]


def lapse_all(connection: sa.Connection, now_ms: int) -> None:
    """End the time of every lease: the owner of a SQLite store has just begun anew."""
    connection.execute(t.leases.update().values(until_ms=now_ms - 1))


def _is_same(lease: Lease) -> sa.ColumnElement[bool]:
    return sa.and_(
        t.leases.c.id == lease.id,
        t.leases.c.incarnation == lease.incarnation,
        t.leases.c.epoch == lease.epoch,
    )

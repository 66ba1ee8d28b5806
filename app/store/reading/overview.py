"""How things stand: counts, what is oldest, what is paused, who stopped calling."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import sqlalchemy as sa

from app.store import tables as t
from app.store.rare import IS_IGNORED

Sources = tuple[str, ...] | None
# Percentiles are those of so many deliveries at most.
_LATEST = 2_000


@dataclass(frozen=True, slots=True)
class Pause:
    """A part whose work was stopped from being started."""

    what: str
    reason: str
    operator: str
    since_ms: int


@dataclass(frozen=True, slots=True)
class SourceNumbers:
    """What came of one source lately: deliveries by verdict, and when the last one came."""

    verdicts: Mapping[str, int]
    last_ms: int


@dataclass(frozen=True, slots=True)
class DestinationNumbers:
    """What became of one destination's messages, and of its attempts lately."""

    states: Mapping[str, int]
    outcomes: Mapping[str, int]
    mean_ms: float
    oldest_due_ms: int
    took_ms: tuple[int, ...] = ()
    last_error: str = ""


def states(connection: sa.Connection, what: str, sources: Sources) -> dict[str, int]:
    """How many files, jobs or messages are in each state."""
    table = {"files": t.files, "jobs": t.jobs, "messages": t.messages}[what]
    query = sa.select(table.c.state, sa.func.count()).group_by(table.c.state)
    if sources is not None:
        query = query.where(table.c.source.in_(sources))
    return {row[0]: row[1] for row in connection.execute(query)}


def running(connection: sa.Connection) -> dict[str, int]:
    """How much work of each kind is under a lease."""
    query = sa.select(t.leases.c.kind, sa.func.count()).group_by(t.leases.c.kind)
    return {row[0]: row[1] for row in connection.execute(query)}


def oldest_due(connection: sa.Connection, now_ms: int) -> dict[str, int]:
    """Since when the oldest due work of each kind waits, in milliseconds since 1970."""
    jobs = (
        sa.select(t.jobs.c.kind, sa.func.min(t.jobs.c.due_ms))
        .where(t.OPEN_JOBS, t.jobs.c.due_ms <= now_ms)
        .group_by(t.jobs.c.kind)
    )
    found = {row[0]: row[1] for row in connection.execute(jobs)}
    messages = sa.select(sa.func.min(t.messages.c.due_ms)).where(
        t.OPEN_MESSAGES, t.messages.c.due_ms <= now_ms
    )
    oldest = connection.execute(messages).scalar()
    return found if oldest is None else found | {"message": oldest}


def due(connection: sa.Connection, now_ms: int) -> dict[str, int]:
    """How much work of each kind is due and not begun."""
    jobs = (
        sa.select(t.jobs.c.kind, sa.func.count())
        .where(t.OPEN_JOBS, t.jobs.c.due_ms <= now_ms, ~_is_leased(t.jobs))
        .group_by(t.jobs.c.kind)
    )
    found = {row[0]: row[1] for row in connection.execute(jobs)}
    messages = sa.select(sa.func.count()).where(
        t.OPEN_MESSAGES, t.messages.c.due_ms <= now_ms, ~_is_leased(t.messages)
    )
    return found | {"message": int(connection.execute(messages).scalar() or 0)}


def unclear(connection: sa.Connection) -> dict[str, int]:
    """How many messages were sent without an answer, by destination; those without any are not."""
    query = (
        sa.select(t.messages.c.destination, sa.func.count())
        .where(t.messages.c.state.in_(("unclear", "held")))
        .group_by(t.messages.c.destination)
    )
    return {row[0]: row[1] for row in connection.execute(query)}


def last_delivery_ms(connection: sa.Connection, source: str) -> int:
    """When a source last called, whatever became of it; 0 for never."""
    last_ms = 0
    for table, at in (
        (t.receipts, t.receipts.c.accepted_ms),
        (t.deliveries, t.deliveries.c.received_ms),
    ):
        newest = sa.select(at).where(table.c.source == source).order_by(table.c.id.desc()).limit(1)
        last_ms = max(last_ms, connection.execute(newest).scalar() or 0)
    return last_ms


def oldest_retry_ms(connection: sa.Connection) -> int | None:
    """Since when the oldest piece of work that failed at least once is under way."""
    ends = [
        connection.execute(
            sa.select(sa.func.min(table.c.ordered_ms)).where(opened, table.c.attempts > 0)
        ).scalar()
        for table, opened in ((t.jobs, t.OPEN_JOBS), (t.messages, t.OPEN_MESSAGES))
    ]
    return min((end for end in ends if end is not None), default=None)


def pauses(connection: sa.Connection) -> list[Pause]:
    """Everything that is paused."""
    columns = [t.controls.c[name] for name in Pause.__dataclass_fields__]
    query = sa.select(*columns).order_by(t.controls.c.what)
    return [Pause(*row) for row in connection.execute(query)]


def waits(connection: sa.Connection, now_ms: int) -> dict[str, tuple[int, str]]:
    """The scopes that were asked to wait: until when, and why."""
    query = sa.select(t.not_before).where(t.not_before.c.until_ms > now_ms)
    return {row.scope: (row.until_ms, row.reason) for row in connection.execute(query)}


def source_numbers(connection: sa.Connection, source: str, since_ms: int) -> SourceNumbers:
    """Deliveries of a source by verdict since a moment, and its last one ever."""
    verdicts: dict[str, int] = {}
    for table, at, number in (
        (t.receipts, t.receipts.c.accepted_ms, sa.func.count()),
        (t.deliveries, t.deliveries.c.received_ms, sa.func.sum(t.deliveries.c["count"])),
    ):
        lately = sa.select(table.c.verdict, number).where(table.c.source == source, at >= since_ms)
        for verdict, found in connection.execute(lately.group_by(table.c.verdict)):
            verdicts[verdict] = verdicts.get(verdict, 0) + int(found)
    return SourceNumbers(verdicts, last_delivery_ms(connection, source))


def key_uses(connection: sa.Connection, source: str) -> dict[str, int]:
    """When each secret of a source, by its id, last proved a delivery: a first one or a repeat."""
    found: dict[str, int] = {}
    table, of_source = t.receipts, t.receipts.c.source == source
    key = ""
    # From key to key: there are few, and millions of receipts of each.
    following = sa.select(sa.func.min(table.c.key_id))
    while (
        key := connection.execute(following.where(of_source, table.c.key_id > key)).scalar() or ""
    ):
        last = sa.select(sa.func.max(table.c.accepted_ms)).where(of_source, table.c.key_id == key)
        found[key] = int(connection.execute(last).scalar() or 0)
    again = t.deliveries
    later = sa.select(again.c.key_id, sa.func.max(again.c.received_ms)).where(
        again.c.source == source, again.c.key_id != ""
    )
    for name, at_ms in connection.execute(later.group_by(again.c.key_id)):
        found[name] = max(found.get(name, 0), at_ms)
    return found


def last_attempt(connection: sa.Connection, scope: str) -> int | None:
    """When work of this scope was last begun."""
    query = sa.select(t.attempts.c.started_ms).where(t.attempts.c.scope == scope)
    return connection.execute(query.order_by(t.attempts.c.id.desc()).limit(1)).scalar()


def destination_numbers(
    connection: sa.Connection, name: str, since_ms: int, now_ms: int
) -> DestinationNumbers:
    """Messages of a destination by state; attempts since a moment by outcome."""
    by_state = (
        sa.select(t.messages.c.state, sa.func.count())
        .where(t.messages.c.destination == name)
        .group_by(t.messages.c.state)
    )
    lately = sa.and_(
        t.attempts.c.scope == f"destination:{name}",
        t.attempts.c.started_ms >= since_ms,
        t.attempts.c.ended_ms.is_not(None),
    )
    by_outcome = (
        sa.select(t.attempts.c.outcome, sa.func.count())
        .where(lately)
        .group_by(t.attempts.c.outcome)
    )
    took = sa.func.avg(t.attempts.c.ended_ms - t.attempts.c.started_ms)
    oldest = sa.select(sa.func.min(t.messages.c.due_ms)).where(
        t.messages.c.destination == name, t.OPEN_MESSAGES, t.messages.c.due_ms <= now_ms
    )
    return DestinationNumbers(
        states={row[0]: row[1] for row in connection.execute(by_state)},
        outcomes={row[0]: row[1] for row in connection.execute(by_outcome)},
        mean_ms=float(connection.execute(sa.select(took).where(lately)).scalar() or 0),
        oldest_due_ms=connection.execute(oldest).scalar() or 0,
        took_ms=_took_ms(connection, name),
        last_error=_last_error(connection, name),
    )


def _took_ms(connection: sa.Connection, name: str) -> tuple[int, ...]:
    """How long the latest deliveries took, the quickest first."""
    query = (
        sa.select(t.attempts.c.ended_ms - t.attempts.c.started_ms)
        .where(t.attempts.c.scope == f"destination:{name}", t.attempts.c.outcome == "done")
        .order_by(t.attempts.c.id.desc())
        .limit(_LATEST)
    )
    return tuple(sorted(connection.execute(query).scalars()))


def _last_error(connection: sa.Connection, name: str) -> str:
    query = (
        sa.select(t.attempts.c.error)
        .where(t.attempts.c.scope == f"destination:{name}", t.attempts.c.ended_ms.is_not(None))
        .order_by(t.attempts.c.id.desc())
        .limit(1)
    )
    return connection.execute(query).scalar() or ""


def conflicts(connection: sa.Connection, sources: Sources) -> int:
    """How many deliveries are in quarantine and not settled."""
    query = sa.select(sa.func.count()).where(
        t.deliveries.c.verdict == "conflict", t.deliveries.c.settled == ""
    )
    if sources is not None:
        query = query.where(t.deliveries.c.source.in_(sources))
    return int(connection.execute(query).scalar() or 0)


def ignored_types(connection: sa.Connection, source: str) -> dict[str, int]:
    """How many events of each kind of a source started nothing."""
    query = (
        sa.select(t.receipts.c.type, sa.func.count())
        .where(t.receipts.c.source == source, IS_IGNORED)
        .group_by(t.receipts.c.type)
        .limit(200)
    )
    return {row[0]: row[1] for row in connection.execute(query)}


def _is_leased(table: sa.Table) -> sa.ColumnElement[bool]:
    return sa.exists().where(t.leases.c.id == table.c.id)

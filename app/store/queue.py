"""Due work, read so that nothing that stands still keeps the rest from moving.

Downloads and transformations are read per source and messages per destination, each only as far
as it has free slots and is neither paused nor asked to wait nor cut off by its breaker.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Literal

import sqlalchemy as sa

from app.store import breakers, projections, rates, rows
from app.store import tables as t
from app.store.leases import WorkKind

# So many jobs that lost a worker may stand before the others without keeping them from being read.
_MOST_SUSPECTS = 64
# The next lost worker is the third, which ends the job.
_LAST_CHANCE = 2
# So many times as many messages are looked at as are taken, for those of other files among them.
_LOOKED_AT = 4
# How strictly a destination's messages about one file wait for each other: not at all, for those
# that may still be sent, or also for dead ones.
Ordered = Literal["", "continue", "block"]


@dataclass(frozen=True, slots=True)
class Due:
    """A piece of work that may be claimed now."""

    id: str
    kind: WorkKind
    scope: str


@dataclass(frozen=True, slots=True)
class Slots:
    """How many pieces of work of a source or destination may begin now."""

    scope: str
    free: int
    ordered: Ordered = ""


@dataclass(frozen=True, slots=True)
class Excluded:
    """What does not move now: whole sources, steps, and recipes (by digest).

    ``is_calm`` says that this worker has lived long enough for a job that two workers died under.
    """

    sources: frozenset[str] = frozenset()
    steps: frozenset[str] = frozenset()
    recipes: frozenset[str] = frozenset()
    is_calm: bool = True


@dataclass(frozen=True, slots=True)
class Picture:
    """What stands in the way of work at one moment, by scope.

    ``paused`` are the parts that operators paused, ``waits`` ends of waits that were asked for,
    ``running`` numbers of leases, ``breakers`` the states of circuits, ``rates`` when work began.
    """

    paused: frozenset[str] = frozenset()
    waits: Mapping[str, int] = field(default_factory=dict)
    running: Mapping[str, int] = field(default_factory=dict)
    breakers: Mapping[str, str] = field(default_factory=dict)
    rates: Mapping[str, str] = field(default_factory=dict)


def picture(connection: sa.Connection, now_ms: int) -> Picture:
    """What stands in the way of work now, everywhere."""
    return Picture(
        paused=paused(connection),
        waits={row[0]: row[1] for row in rows.fetch(connection, _WAITS) if row[1] > now_ms},
        running={row[0]: row[1] for row in rows.fetch(connection, _RUNNING)},
        breakers=breakers.load_all(connection),
        rates=rates.load_all(connection),
    )


def picture_of(connection: sa.Connection, scope: str, now_ms: int) -> rows.Asked[Picture]:
    """What stands in the way of work of one scope now."""
    answer = rows.ask(connection, _PICTURE, {"scope": scope})

    def seen() -> Picture:
        found = answer()
        waits = [number for what, _, number, _ in found if what == "wait" and number > now_ms]
        states = [state.decode() for what, _, _, state in found if what == "breaker"]
        return Picture(
            paused=frozenset(name for what, name, _, _ in found if what == "paused"),
            waits={scope: waits[0]} if waits else {},
            running={scope: sum(number for what, _, number, _ in found if what == "running")},
            breakers={scope: "".join(states)},
        )

    return seen


def _part(what: str, name: Any, number: Any, state: Any) -> sa.Select[Any]:
    return sa.select(
        sa.literal(what, literal_execute=True).label("what"),
        name.label("name"),
        number.label("number"),
        state.label("state"),
    )


def _picture_of_a_scope() -> sa.CompoundSelect[Any]:
    """All that a claim has to look at, in one statement."""
    scope = sa.bindparam("scope", type_=sa.Text)
    text, number = sa.cast(sa.null(), sa.Text), sa.cast(sa.null(), sa.BigInteger)
    state = sa.cast(sa.null(), sa.LargeBinary)
    return sa.union_all(
        _part("paused", t.controls.c.what, number, state),
        _part("wait", text, t.not_before.c.until_ms, state).where(t.not_before.c.scope == scope),
        _part("running", text, sa.func.count(), state).where(t.leases.c.scope == scope),
        _part("breaker", text, number, t.breakers.c.state).where(t.breakers.c.scope == scope),
    )


_PICTURE = _picture_of_a_scope()
_WAITS = sa.select(t.not_before.c.scope, t.not_before.c.until_ms)
_RUNNING = sa.select(t.leases.c.scope, sa.func.count()).group_by(t.leases.c.scope)
_PAUSED = sa.select(t.controls.c.what)


def paused(connection: sa.Connection) -> frozenset[str]:
    """The parts that operators paused: ``destination:erp``, ``all``."""
    return frozenset(what for (what,) in rows.fetch(connection, _PAUSED))


def ask_to_wait(connection: sa.Connection, scope: str, until_ms: int, reason: str) -> None:
    """Let nothing of this scope begin before this time; a longer wait stays."""
    query = sa.select(t.not_before.c.until_ms).where(t.not_before.c.scope == scope)
    if (connection.execute(query).scalar() or 0) < until_ms:
        row = {"scope": scope, "until_ms": until_ms, "reason": reason}
        projections.upsert(connection, t.not_before, [row])


def due_messages(
    connection: sa.Connection, slots: Slots, now_ms: int, paused_sources: frozenset[str]
) -> list[Due]:
    """Due messages of one destination, half of the slots for the oldest, half for the newest.

    Of a file that has many only one is taken before those of other files.
    """
    found: dict[str, Due] = {}
    destination, most = slots.scope.removeprefix("destination:"), (slots.free + 1) // 2
    asked = {"destination": destination, "now_ms": now_ms, "most": most * _LOOKED_AT}
    for descending in (False, True):
        query = _messages(slots.ordered, descending=descending)
        if paused_sources:
            moving = query.where(t.messages.c.source.not_in(paused_sources))
            works = connection.execute(moving, asked).all()
        else:
            works = rows.fetch(connection, query, asked)
        fair = _by_file([(work, stream) for work, stream in works if work not in found], most)
        found.update((work, Due(work, "message", slots.scope)) for work in fair)
    return list(found.values())[: slots.free]


def _by_file(works: Sequence[tuple[str, str]], most: int) -> list[str]:
    """The first of each file, in their order, before the others of any."""
    first: dict[str, str] = {}
    for work, stream in works:
        first.setdefault(stream, work)
    ahead = list(first.values())
    return (ahead + [work for work, stream in works if first[stream] != work])[:most]


@cache
def _messages(ordered: Ordered, *, descending: bool) -> sa.Select[Any]:
    order = t.messages.c.due_ms.desc() if descending else t.messages.c.due_ms
    leased = sa.select(t.leases.c.id).where(t.leases.c.id == t.messages.c.id)
    query = (
        sa.select(t.messages.c.id, t.messages.c.stream)
        .where(t.messages.c.destination == sa.bindparam("destination"))
        .where(t.OPEN_MESSAGES, t.messages.c.due_ms <= sa.bindparam("now_ms"), ~leased.exists())
        .order_by(order)
        .limit(sa.bindparam("most"))
    )
    return query.where(~_earlier(ordered).exists()) if ordered else query


def is_next(connection: sa.Connection, message: str, ordered: Ordered) -> bool:
    """Whether no earlier message about the same file has to reach the destination first."""
    return bool(rows.fetch(connection, _next(ordered), {"message": message}))


@cache
def _next(ordered: Ordered) -> sa.Select[Any]:
    query = sa.select(t.messages.c.id).where(t.messages.c.id == sa.bindparam("message"))
    return query.where(~_earlier(ordered).exists())


def _earlier(ordered: Ordered) -> sa.Select[Any]:
    """The messages that go before the one of the enclosing query."""
    other = t.messages.alias("earlier")
    states = ("pending", "waiting", "unclear", "held")
    return (
        sa.select(other.c.id)
        .where(other.c.stream == t.messages.c.stream)
        .where(other.c.destination == t.messages.c.destination)
        .where(other.c.sequence < t.messages.c.sequence)
        .where(other.c.state.in_((*states, "dead") if ordered == "block" else states))
    )


def _jobs() -> sa.Select[Any]:
    leased = sa.select(t.leases.c.id).where(t.leases.c.id == t.jobs.c.id)
    return (
        sa.select(t.jobs.c.id, t.jobs.c.losses)
        .where(t.jobs.c.kind == sa.bindparam("kind"), t.jobs.c.source == sa.bindparam("source"))
        .where(t.OPEN_JOBS, t.jobs.c.due_ms <= sa.bindparam("now_ms"), ~t.jobs.c.asked)
        .where(~leased.exists())
        .order_by(t.jobs.c.due_ms)
        .limit(sa.bindparam("most"))
    )


_JOBS = _jobs()


def due_jobs(
    connection: sa.Connection, kind: WorkKind, slots: Slots, now_ms: int, excluded: Excluded
) -> list[Due]:
    """Due jobs of one kind and one source, the longest due first.

    Of those whose worker died under them one at a time: one of them may have killed it, and must
    not take all that run beside it along until they count as killers too. One that has a single
    chance left comes last, and only where the worker is calm: processes that are killed again and
    again by someone else must not make a dead letter of it.
    """
    source = slots.scope.removeprefix("source:")
    asked = {"kind": kind, "source": source, "now_ms": now_ms, "most": slots.free + _MOST_SUSPECTS}
    found = (
        rows.fetch(connection, _JOBS, asked)
        if not (excluded.steps or excluded.recipes)
        else (_moving(connection, asked, excluded))
    )
    suspects = {work: losses for work, losses in found if losses}
    tried = [w for w, losses in suspects.items() if excluded.is_calm or losses < _LAST_CHANCE]
    if tried and not _is_suspect_busy(connection, kind, source):
        del suspects[min(tried, key=suspects.__getitem__)]
    due = [Due(work, kind, slots.scope) for work, _ in found if work not in suspects]
    return due[: slots.free]


def _moving(
    connection: sa.Connection, asked: Mapping[str, Any], excluded: Excluded
) -> Sequence[Any]:
    """The due jobs but for those that stand still."""
    query = _JOBS
    if excluded.steps and asked["kind"] == "transform":
        query = query.where(t.jobs.c.name.not_in(excluded.steps))
    if excluded.recipes:
        query = query.where(t.jobs.c.recipe.not_in(excluded.recipes))
    return connection.execute(query, dict(asked)).all()


def _is_suspect_busy(connection: sa.Connection, kind: WorkKind, source: str) -> bool:
    """Whether a job of this kind and source that lost a worker is being done."""
    query = sa.select(t.leases.c.id).join(t.jobs, t.jobs.c.id == t.leases.c.id)
    query = query.where(t.jobs.c.kind == kind, t.jobs.c.source == source, t.jobs.c.losses > 0)
    return connection.execute(query.limit(1)).first() is not None


def next_due_ms(connection: sa.Connection, scopes: Iterable[str], now_ms: int) -> int | None:
    """When the next work of these sources and destinations is due that is not due yet."""
    ends = [_next_due_ms(connection, scope, now_ms) for scope in scopes]
    return min((end for end in ends if end is not None), default=None)


def _next_due_ms(connection: sa.Connection, scope: str, now_ms: int) -> int | None:
    part, _, name = scope.partition(":")
    query = _NEXT_MESSAGE if part == "destination" else _NEXT_JOB
    found: int | None = rows.fetch(connection, query, {"name": name, "now_ms": now_ms})[0][0]
    return found


_NEXT_MESSAGE = (
    sa.select(sa.func.min(t.messages.c.due_ms))
    .where(t.OPEN_MESSAGES, t.messages.c.destination == sa.bindparam("name"))
    .where(t.messages.c.due_ms > sa.bindparam("now_ms"))
)
_NEXT_JOB = (
    sa.select(sa.func.min(t.jobs.c.due_ms))
    .where(t.jobs.c.kind.in_(("download", "transform")), t.OPEN_JOBS)
    .where(t.jobs.c.source == sa.bindparam("name"), t.jobs.c.due_ms > sa.bindparam("now_ms"))
)


def pending(connection: sa.Connection) -> Mapping[tuple[str, str], int]:
    """How much unfinished work each source, destination and recipe (by digest) has."""
    found: dict[tuple[str, str], int] = {}
    for part, column, states in (
        ("sources", t.jobs.c.source, t.OPEN_JOBS),
        ("recipes", t.jobs.c.recipe, t.OPEN_JOBS),
        ("sources", t.messages.c.source, t.OPEN_MESSAGES),
        ("destinations", t.messages.c.destination, t.OPEN_MESSAGES),
    ):
        query = sa.select(column, sa.func.count()).where(states).group_by(column)
        for name, count in connection.execute(query):
            found[part, name] = found.get((part, name), 0) + count
    return found


def unfinished(connection: sa.Connection) -> int:
    """How many jobs and messages are still to be done, or are being done."""
    found = 0
    for table, states in ((t.jobs, t.OPEN_JOBS), (t.messages, t.OPEN_MESSAGES), (t.leases, None)):
        query = sa.select(sa.func.count()).select_from(table)
        found += connection.execute(query if states is None else query.where(states)).scalar_one()
    return found

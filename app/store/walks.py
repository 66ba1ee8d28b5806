"""Walks along change feeds: asked for, claimed by one at a time, and how far each has come.

A notice counts ``asked`` up in the transaction that accepts it. A walk remembers that number when
it is claimed; if it has risen when the walk ends, the next one is due at once. So of any number of
notices one walk runs, one more follows, and the last is never lost. A claim has an epoch: a walker
that was overtaken changes nothing.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql, sqlite

from app.store import tables as t

_W = t.walks.c
_TEXTS = {"cursor": "", "owner": "", "error": ""}
_NOTHING: dict[str, Any] = dict.fromkeys((column.name for column in t.walks.c), 0) | _TEXTS


@dataclass(frozen=True, slots=True)
class Wake:
    """A notice asks for a walk; ``is_missed`` says that notices before it were lost."""

    source: str
    is_missed: bool = False


@dataclass(frozen=True, slots=True)
class Claim:
    """The right to walk one feed for a time.

    ``asked`` are the notices that this walk answers; ``is_asked``: it walks as notices told it
    to, and not of its own accord.
    """

    source: str
    owner: str
    epoch: int
    started_ms: int
    asked: int
    is_asked: bool
    failures: int
    cursor: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class Step:
    """A walk has come to ``cursor``; ``next_s`` is when the next is due, 0 for at once."""

    cursor: str = field(repr=False)
    reconciled: int
    next_s: float
    is_whole: bool


@dataclass(frozen=True, slots=True)
class Standing:
    """How a feed stands: when its last whole walk began, and what went wrong since.

    ``reconciled`` is how many events were found that no notice had asked to look for.
    """

    source: str
    walked_ms: int
    failures: int
    error: str
    reconciled: int
    due_ms: int


def ask(connection: sa.Connection, wakes: Iterable[Wake], now_ms: int) -> None:
    """A walk of each of these sources is wanted, whatever walks now."""
    found: dict[str, Wake] = {}
    for wake in wakes:
        found[wake.source] = max(wake, found.get(wake.source, wake), key=lambda w: w.is_missed)
    # In the order of their names, or two batches could wait for each other.
    for source in sorted(found):
        _ensure(connection, source)
        values: dict[str, Any] = {"asked": _W.asked + 1}
        if found[source].is_missed:
            values["missed_ms"] = now_ms
        connection.execute(t.walks.update().where(_W.source == source).values(values))


def due(connection: sa.Connection, sources: Iterable[str], now_ms: int) -> list[str]:
    """Those of the sources whose feed is to be walked now and is not being walked."""
    wanted = list(sources)
    query = sa.select(_W.source).where(_W.source.in_(wanted))
    known = set(connection.execute(query).scalars())
    ready = set(connection.execute(query.where(_is_due(now_ms))).scalars())
    return [source for source in wanted if source in ready or source not in known]


def claim(
    connection: sa.Connection, source: str, owner: str, now_ms: int, *, lease_ms: int
) -> Claim | None:
    """Become the one who walks this feed; ``None`` if another does or nothing is due."""
    _ensure(connection, source)
    taken = (
        t.walks.update()
        .where(_W.source == source, _is_due(now_ms))
        .values(owner=owner, epoch=_W.epoch + 1, until_ms=now_ms + lease_ms)
        .returning(t.walks)
    )
    row = connection.execute(taken).first()
    if row is None:
        return None
    return Claim(
        source=source,
        owner=owner,
        epoch=row.epoch,
        started_ms=now_ms,
        asked=row.asked,
        is_asked=row.asked > row.answered and row.missed_ms <= row.walked_ms,
        failures=row.failures,
        cursor=row.cursor,
    )


def renew(connection: sa.Connection, mine: Claim, now_ms: int, *, lease_ms: int) -> bool:
    """Walk on; false for one who was overtaken."""
    return _update(connection, mine, until_ms=now_ms + lease_ms)


def keep(connection: sa.Connection, mine: Claim, step: Step, now_ms: int) -> bool:
    """The walk has come so far: what it found is stored. Gives the claim up."""
    values: dict[str, Any] = {
        "cursor": step.cursor,
        "until_ms": 0,
        "due_ms": now_ms + round(step.next_s * 1000),
        "reconciled": _W.reconciled + step.reconciled,
        "failures": 0,
        "error": "",
    }
    if step.is_whole:
        values |= {"answered": mine.asked, "walked_ms": mine.started_ms}
    return _update(connection, mine, **values)


def fail(connection: sa.Connection, mine: Claim, now_ms: int, *, error: str, wait_s: float) -> bool:
    """The walk came to nothing: what asked for it still does, but not before so long."""
    until_ms = now_ms + round(wait_s * 1000)
    failures = mine.failures + 1
    return _update(
        connection, mine, until_ms=0, not_before_ms=until_ms, failures=failures, error=error
    )


def hand_back(connection: sa.Connection, mine: Claim) -> bool:
    """Give the claim up as if it had never been."""
    return _update(connection, mine, until_ms=0)


def lapse_all(connection: sa.Connection, now_ms: int) -> None:
    """End every claim: the owner of a SQLite store has just begun anew."""
    connection.execute(t.walks.update().where(_W.until_ms > now_ms).values(until_ms=0))


def standing(connection: sa.Connection) -> dict[str, Standing]:
    """How every feed stands, by the source's first name."""
    columns = [t.walks.c[name] for name in Standing.__dataclass_fields__]
    return {row.source: Standing(*row) for row in connection.execute(sa.select(*columns))}


def _is_due(now_ms: int) -> sa.ColumnElement[bool]:
    is_wanted = sa.or_(_W.asked > _W.answered, _W.due_ms <= now_ms)
    return sa.and_(is_wanted, _W.until_ms < now_ms, _W.not_before_ms <= now_ms)


def _update(connection: sa.Connection, mine: Claim, **values: Any) -> bool:
    is_mine = sa.and_(_W.source == mine.source, _W.owner == mine.owner, _W.epoch == mine.epoch)
    return connection.execute(t.walks.update().where(is_mine).values(**values)).rowcount == 1


def _ensure(connection: sa.Connection, source: str) -> None:
    connection.execute(_insert(connection.dialect.name), _NOTHING | {"source": source})


@cache
def _insert(dialect: str) -> sa.Executable:
    insert = sqlite.insert if dialect == "sqlite" else postgresql.insert
    return insert(t.walks).on_conflict_do_nothing(index_elements=["source"])

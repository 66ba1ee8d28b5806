"""Alerts that are open or were: one row a trouble, so that no trouble is told of twice."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import sqlalchemy as sa

from app.store import locks, projections
from app.store import tables as t

# A trouble that comes and goes is one trouble: it is over when it was away for so long.
QUIET_MS = 120_000
_LOCK = "laufzettel:alerts"
_KEPT_MS = 30 * 86_400_000
_TRY_AGAIN_MS = 60_000
_MOST_TOLD = 100


@dataclass(frozen=True, slots=True)
class Found:
    """A trouble as it is now. ``key`` is what makes it the same one the next time."""

    key: str
    what: str
    name: str
    count: int
    reason: str


@dataclass(frozen=True, slots=True)
class Alert:
    """A trouble that somebody is to hear of. ``told`` says how far whom."""

    key: str
    what: str
    name: str
    count: int
    reason: str
    opened_ms: int
    closed_ms: int
    told: Mapping[str, str]


def keep(connection: sa.Connection, found: Iterable[Found], now_ms: int) -> None:
    """Open what is new, close what has been away for long enough; called inside a transaction."""
    locks.lock(connection, [_LOCK])
    known = {row.key: row for row in connection.execute(sa.select(t.alerts))}
    rows = []
    for trouble in found:
        row = known.get(trouble.key)
        is_open = row is not None and not row.closed_ms
        rows.append(
            {
                "key": trouble.key,
                "what": trouble.what,
                "name": trouble.name,
                "count": trouble.count,
                "reason": trouble.reason,
                "opened_ms": row.opened_ms if row is not None and is_open else now_ms,
                "seen_ms": now_ms,
                "closed_ms": 0,
                "due_ms": row.due_ms if row is not None and is_open else now_ms,
                "told": row.told if row is not None and is_open else "{}",
            }
        )
    projections.upsert(connection, t.alerts, rows)
    over = sa.and_(t.alerts.c.closed_ms == 0, t.alerts.c.seen_ms <= now_ms - QUIET_MS)
    connection.execute(t.alerts.update().where(over).values(closed_ms=now_ms, due_ms=now_ms))
    old = sa.and_(t.alerts.c.closed_ms > 0, t.alerts.c.closed_ms <= now_ms - _KEPT_MS)
    connection.execute(t.alerts.delete().where(old))


def take(connection: sa.Connection, places: Iterable[str], now_ms: int) -> list[Alert]:
    """The alerts that one of these places has not heard of; they are this caller's for a minute."""
    locks.lock(connection, [_LOCK])
    wanted = frozenset(places)
    query = sa.select(t.alerts).where(t.alerts.c.due_ms <= now_ms).order_by(t.alerts.c.opened_ms)
    found = [a for a in map(_alert, connection.execute(query)) if missing(a, wanted)][:_MOST_TOLD]
    mine = t.alerts.c.key.in_([alert.key for alert in found])
    connection.execute(t.alerts.update().where(mine).values(due_ms=now_ms + _TRY_AGAIN_MS))
    return found


def note(connection: sa.Connection, alert: Alert, told: Mapping[str, str]) -> None:
    """Write down who has heard how much of it, unless it was opened anew meanwhile."""
    same = sa.and_(t.alerts.c.key == alert.key, t.alerts.c.opened_ms == alert.opened_ms)
    connection.execute(t.alerts.update().where(same).values(told=json.dumps(dict(told))))


def listed(connection: sa.Connection) -> list[Alert]:
    """Open alerts, the newest first, and behind them those that are over."""
    query = sa.select(t.alerts).order_by(t.alerts.c.closed_ms > 0, t.alerts.c.opened_ms.desc())
    return [_alert(row) for row in connection.execute(query.limit(200))]


def missing(alert: Alert, places: Iterable[str]) -> list[str]:
    """Who has not heard of its present state. What was over before it was told is not told of."""
    if not alert.closed_ms:
        return sorted(place for place in places if place not in alert.told)
    return sorted(place for place in places if alert.told.get(place) == "opened")


def _alert(row: sa.Row[tuple[object, ...]]) -> Alert:
    fields = {name: getattr(row, name) for name in Alert.__dataclass_fields__}
    return Alert(**fields | {"told": json.loads(row.told)})

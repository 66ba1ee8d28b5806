"""Positions without gaps and the hash chain, on PostgreSQL: given by one leader at a time.

Writers hand their events over with their transaction's id. What is below the oldest transaction
that may still write can be read in its final order: (xid as a number, ordinal). The leader holds a
row with a term; every write of it names the term, so one that was overtaken changes nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import sqlalchemy as sa

from app.store import event_log, rows
from app.store.errors import BrokenLogError

LEASE_MS = 15_000


@dataclass(frozen=True, slots=True)
class Term:
    """A leader's claim; ``number`` rises with each new leader."""

    owner: str
    number: int


def lead(connection: sa.Connection, owner: str) -> Term | None:
    """Become or stay the leader; ``None`` while another's lease runs."""
    row = connection.execute(_LEAD, {"owner": owner, "lease": LEASE_MS}).first()
    return Term(owner, row.term) if row else None


def resign(connection: sa.Connection, term: Term) -> None:
    """Give the lead up, so that another need not wait for the lease to end."""
    connection.execute(_RESIGN, {"owner": term.owner, "term": term.number})


def sequence(connection: sa.Connection, term: Term, *, limit: int) -> int | None:
    """Place what is final, at most ``limit`` events; gives how many, ``None`` if the term is over.

    Raises ``BrokenLogError`` if an event would come before its predecessor in its stream.
    """
    # Nothing is locked, and so nothing written, while there is nothing to place.
    if not rows.fetch(connection, _ANY):
        return 0
    with rows.together(connection):
        confirmed = rows.ask(connection, _CONFIRM, {"owner": term.owner, "term": term.number})
        asked = rows.ask(connection, _FINAL, {"limit": limit})
        head = event_log.ask_head(connection)
    if not confirmed():
        return None
    final = asked()
    _check_revisions(final)
    with rows.together(connection):
        event_log.place(connection, head(), [(event, body) for event, _, _, body in final])
        rows.write(connection, _PLACED, [{"event": event} for event, _, _, _ in final])
    return len(final)


def frontier_age_s(connection: sa.Connection) -> tuple[float, int | None]:
    """How long the oldest transaction that may still write has been open, and its process id."""
    row = connection.execute(_OLDEST).first()
    return (float(row.age), row.pid) if row else (0.0, None)


def unsequenced(connection: sa.Connection) -> int:
    """How many events wait for a position."""
    return int(connection.execute(sa.text("SELECT count(*) FROM unsequenced")).scalar_one())


def _check_revisions(final: Sequence[tuple[int, str, int, bytes]]) -> None:
    last: dict[str, int] = {}
    for event, stream, revision, _ in final:
        before = last.get(stream)
        if before is not None and revision != before + 1:
            raise BrokenLogError(
                f"event {event} of stream {stream} has revision {revision} right behind {before}"
            )
        last[stream] = revision


_LEAD = sa.text(
    """
    INSERT INTO sequencer (id, owner, term, until_ms)
    VALUES (1, :owner, 1, (extract(epoch FROM clock_timestamp()) * 1000)::bigint + :lease)
    ON CONFLICT (id) DO UPDATE SET
        owner = excluded.owner,
        until_ms = excluded.until_ms,
        term = sequencer.term + CASE WHEN sequencer.owner = excluded.owner THEN 0 ELSE 1 END
    WHERE sequencer.owner = excluded.owner
        OR sequencer.until_ms < (extract(epoch FROM clock_timestamp()) * 1000)::bigint
    RETURNING term
    """
)
_RESIGN = sa.text("UPDATE sequencer SET until_ms = 0 WHERE owner = :owner AND term = :term")
_CONFIRM = sa.text(
    "SELECT term FROM sequencer WHERE id = 1 AND owner = :owner AND term = :term FOR UPDATE"
)
# Frontier and rows in ONE statement: two statements are two snapshots, and an event that commits
# between them would be passed over.
_FINAL = sa.text(
    """
    SELECT u.event, e.stream, e.revision, e.body
    FROM unsequenced u JOIN events e ON e.id = u.event
    WHERE u.xid < pg_snapshot_xmin(pg_current_snapshot())
    ORDER BY u.xid, u.event
    LIMIT :limit
    """
)
_ANY = sa.text("SELECT 1 FROM unsequenced LIMIT 1")
_PLACED = sa.text("DELETE FROM unsequenced WHERE event = :event")
# One that only reads holds no position up: it has a snapshot and no xid.
_OLDEST = sa.text(
    """
    SELECT extract(epoch FROM clock_timestamp() - xact_start) AS age, pid
    FROM pg_stat_activity
    WHERE backend_xid IS NOT NULL
    ORDER BY xact_start LIMIT 1
    """
)

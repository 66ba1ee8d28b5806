"""The whole store out of one database and into another, whichever kinds they are.

Rows go as they are, so hashes, receipts and ids stay the same. What is only of the moment stays
behind: leases, wake-ups, breakers.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice

import msgspec
import sqlalchemy as sa

from app.store import campaigns, event_log, installation, projections
from app.store import tables as t
from app.store.codec import encode_event
from app.store.numbers import NUMBERED
from domain.commands import Cause
from domain.installation import CONTROL_STREAM, LogRestored

AT_ONCE = 500
_RESTORE = "restore"
# A walk goes on from where it was in the backup, and so finds again what was lost since.
_KEPT = (t.tokens, t.idempotency, t.cursors, t.walks, t.campaigns, t.campaign_messages)
COPIED = (*t.of_class("truth"), *t.of_class("history"), *_KEPT, *t.of_class("projection"))
BY_NAME: Mapping[str, sa.Table] = {table.name: table for table in COPIED}
NAMES: Sequence[str] = tuple(BY_NAME)


def columns(name: str) -> list[str]:
    """The columns of a table, in the order of its rows."""
    return [column.name for column in BY_NAME[name].columns]


def rows(connection: sa.Connection, name: str) -> Iterator[bytes]:
    """Every row of a table, encoded; in constant memory."""
    streamed = connection.execution_options(yield_per=AT_ONCE)
    for row in streamed.execute(sa.select(BY_NAME[name])):
        yield msgspec.msgpack.encode(list(row))


def fill(
    connection: sa.Connection, name: str, names: Sequence[str], encoded: Iterable[bytes]
) -> int:
    """Insert rows as they were encoded, with the columns that they had; gives how many."""
    table, waiting, count = BY_NAME[name], iter(encoded), 0
    while some := list(islice(waiting, AT_ONCE)):
        values = [dict(zip(names, msgspec.msgpack.decode(row), strict=True)) for row in some]
        connection.execute(table.insert(), values)
        count += len(values)
    return count


def is_empty(connection: sa.Connection) -> bool:
    """Whether nothing was ever recorded here."""
    some = sa.select(t.events.c.id).limit(1)
    return installation.find(connection) is None and connection.execute(some).first() is None


def settle(connection: sa.Connection) -> None:
    """After the rows: numbers go on behind them, and events without a position get theirs."""
    if connection.dialect.name == "postgresql":
        ends = [connection.execute(sa.select(sa.func.max(c))).scalar() for c in NUMBERED]
        last = max(int(end or 0) for end in ends)
        connection.execute(sa.text("SELECT setval('numbers', :last)"), {"last": last + 1})
    query = (
        sa.select(t.events.c.id, t.events.c.body)
        .select_from(t.events.outerjoin(t.positions, t.positions.c.event == t.events.c.id))
        .where(t.positions.c.position.is_(None))
        .order_by(t.events.c.id)
    )
    left = [(row.id, row.body) for row in connection.execute(query)]
    event_log.place(connection, event_log.head(connection), left)


def restored(connection: sa.Connection, *, at_ms: int, salt: bytes) -> int:
    """Begin a new incarnation behind the rows of a backup; gives its number.

    In the transaction of the rows, which no other writer has seen yet: a store that was filled and
    not marked would give out cursors and claims that the lost one gave out before.
    """
    connection.execute(t.installation.update().values(incarnation=t.installation.c.incarnation + 1))
    # What they had not reached when the backup was made, they may have reached since.
    campaigns.stop_all(connection)
    incarnation = int(connection.execute(sa.select(t.installation.c.incarnation)).scalar_one())
    revision = event_log.last_revision(connection, CONTROL_STREAM) + 1
    stored = encode_event(
        LogRestored(at_ms=at_ms, incarnation=incarnation),
        stream=CONTROL_STREAM,
        revision=revision,
        cause=Cause("system", "restore"),
        salt=salt,
    )
    ends = [connection.execute(sa.select(sa.func.max(c))).scalar() for c in NUMBERED]
    number = max(int(end or 0) for end in ends) + 1
    event_log.append(connection, [(number, stored)])
    event_log.place(connection, event_log.head(connection), [(number, stored.body)])
    return incarnation


def begin_restore(connection: sa.Connection, backup: str, at_ms: int) -> None:
    """Leave word that this backup's rows are here, and that what follows them is not done yet."""
    row = {"name": _RESTORE, "value": backup.encode(), "changed_ms": at_ms}
    projections.upsert(connection, t.cursors, [row])


def open_restore(connection: sa.Connection) -> str:
    """The backup whose restore has begun here and has not ended; "" for none."""
    query = sa.select(t.cursors.c.value).where(t.cursors.c.name == _RESTORE)
    return (connection.execute(query).scalar() or b"").decode()


def end_restore(connection: sa.Connection) -> None:
    """All that belongs to the restore is done."""
    connection.execute(t.cursors.delete().where(t.cursors.c.name == _RESTORE))


def digests(connection: sa.Connection) -> list[str]:
    """The digest of every artifact, once."""
    query = sa.select(t.artifacts.c.sha256).distinct().order_by(t.artifacts.c.sha256)
    return list(connection.execute(query).scalars())


def sources(connection: sa.Connection) -> dict[str, int]:
    """Every source that was ever heard, and when the last first delivery of it came."""
    query = sa.select(t.receipts.c.source, sa.func.max(t.receipts.c.accepted_ms))
    found = connection.execute(query.group_by(t.receipts.c.source))
    return {source: int(at_ms) for source, at_ms in found}


def is_in_use(connection: sa.Connection) -> bool:
    """Whether processes are at work on a shared store now; a file has its lock for that."""
    if connection.dialect.name == "sqlite":
        return False
    query = sa.text(
        "SELECT 1 FROM sequencer WHERE until_ms > extract(epoch FROM clock_timestamp()) * 1000"
    )
    return connection.execute(query).first() is not None

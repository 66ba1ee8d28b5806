"""A destination's slots, where several processes claim: each is a row, and who has it is in it.

Claims that are made beside each other do not see each other's leases, so counting leases lets more
through than may go. A row is one's own as soon as it is locked, and nobody waits for another's.
On SQLite claims come one after the other, and counting is enough.
"""

from __future__ import annotations

from collections.abc import Iterable

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql

from app.store import rows
from app.store import tables as t
from app.store.shared_tables import slots as s

_SCOPE: sa.BindParameter[str] = sa.bindparam("of_scope", type_=sa.Text)
# Written into the statement: what is told by name there, each row has to tell.
_NOBODY: sa.ColumnElement[str] = sa.literal_column("''")
_FREE = (
    sa.select(s.c.number)
    .where(s.c.scope == _SCOPE, s.c.work == "", s.c.number <= sa.bindparam("most"))
    .order_by(s.c.number)
    .limit(1)
    .with_for_update(skip_locked=True)
    .scalar_subquery()
)
_TAKE = (
    s.update()
    .where(s.c.scope == _SCOPE, s.c.number == _FREE)
    .values(work=sa.bindparam("of_work"))
    .returning(s.c.number)
)
_COUNT = sa.select(sa.func.count()).where(s.c.scope == _SCOPE)
_END = (
    s.update().where(s.c.scope == _SCOPE, s.c.work == sa.bindparam("of_work")).values(work=_NOBODY)
)
_END_ONE = (
    s.update()
    .where(s.c.scope == _SCOPE, s.c.number == sa.bindparam("of_number"))
    .values(work=_NOBODY)
)


def ask(connection: sa.Connection, scope: str, work: str, most: int) -> rows.Asked[int]:
    """Take the first free slot for this work; the answer is its number, 0 for none."""
    told = {"of_scope": scope, "of_work": work, "most": most}
    found = rows.ask(connection, _TAKE, told)

    def number() -> int:
        taken = found()
        if not taken and _are_missing(connection, scope, most):
            taken = rows.fetch(connection, _TAKE, told)
        return taken[0][0] if taken else 0

    return number


def hand_back(connection: sa.Connection, scope: str, number: int) -> None:
    """Free one slot that was taken in this transaction."""
    rows.write(connection, _END_ONE, [{"of_scope": scope, "of_number": number}])


def end(connection: sa.Connection, ended: Iterable[tuple[str, str]]) -> None:
    """Free the slots of work that has ended, each with its scope."""
    told = [{"of_scope": scope, "of_work": work} for scope, work in sorted(ended)]
    rows.write(connection, _END, told)


def orphans(connection: sa.Connection) -> frozenset[tuple[str, str]]:
    """Slots, by scope and work, whose work has no lease: a release that knows none left them."""
    if connection.dialect.name == "sqlite":
        return frozenset()
    leased = sa.select(t.leases.c.id).where(t.leases.c.id == s.c.work)
    query = sa.select(s.c.scope, s.c.work).where(s.c.work != "", ~leased.exists())
    return frozenset((scope, work) for scope, work in connection.execute(query))


def _are_missing(connection: sa.Connection, scope: str, most: int) -> bool:
    """Make the rows of a destination that is new, or may have more at once than before."""
    count = rows.fetch(connection, _COUNT, {"of_scope": scope})[0][0]
    if count >= most:
        return False
    values = [{"scope": scope, "number": n, "work": ""} for n in range(1, most + 1)]
    insert = postgresql.insert(s).on_conflict_do_nothing()
    connection.execute(insert, values)
    return True

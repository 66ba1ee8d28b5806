"""When work of a destination with a rate began lately: one row for all processes."""

from __future__ import annotations

from functools import cache

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql, sqlite

from app.store import rows
from app.store import tables as t
from domain.rates import begun, dump, free, load

_SCOPE: sa.BindParameter[str] = sa.bindparam("of_scope", type_=sa.Text)
_LOCK = sa.select(t.rates.c.began).where(t.rates.c.scope == _SCOPE).with_for_update()
_SAVE = t.rates.update().where(t.rates.c.scope == _SCOPE).values(began=sa.bindparam("lately"))
_ALL = sa.select(t.rates.c.scope, t.rates.c.began)


def take(connection: sa.Connection, scope: str, per_s: float, now_ms: int) -> bool:
    """Begin one under the rate of this scope, if one may: with the rest of the transaction."""
    found = rows.fetch(connection, _LOCK, {"of_scope": scope})
    if not found:
        rows.fetch(connection, _first(connection.dialect.name), {"scope": scope, "began": ""})
        found = rows.fetch(connection, _LOCK, {"of_scope": scope})
    rate = load(per_s, found[0][0])
    if not free(rate, now_ms):
        return False
    rows.write(connection, _SAVE, [{"of_scope": scope, "lately": dump(begun(rate, now_ms))}])
    return True


def load_all(connection: sa.Connection) -> dict[str, str]:
    """When work began lately, by scope, as ``domain.rates`` reads it."""
    return dict(rows.fetch(connection, _ALL))


@cache
def _first(dialect: str) -> sa.Executable:
    insert = sqlite.insert if dialect == "sqlite" else postgresql.insert
    statement = insert(t.rates).on_conflict_do_nothing(index_elements=["scope"])
    return statement.returning(t.rates.c.scope)

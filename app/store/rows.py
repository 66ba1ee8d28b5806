"""Many rows into a table at once, handed to the driver as they are.

SQLAlchemy makes the statement, once. It would also look at every value of every row, which takes
longer than to write the row; our columns are texts, numbers, flags and bytes, which need no look.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from operator import itemgetter
from typing import Any

import sqlalchemy as sa
from sqlalchemy.sql.compiler import SQLCompiler

Row = Mapping[str, Any]


def write(connection: sa.Connection, statement: sa.ClauseElement, rows: Sequence[Row]) -> None:
    """Execute the statement once for each row; without rows nothing happens."""
    if not rows:
        return
    text, arranged = _prepared(statement, tuple(rows[0]), connection.dialect)
    connection.exec_driver_sql(text, [arranged(row) for row in rows])


@lru_cache(maxsize=256)
def _prepared(
    statement: sa.ClauseElement, names: tuple[str, ...], dialect: sa.Dialect
) -> tuple[str, Callable[[Row], Any]]:
    """The statement's text for rows of these names, and a row as the driver wants it."""
    made = statement.compile(dialect=dialect, column_keys=list(names))
    order = made.positiontup if isinstance(made, SQLCompiler) else None
    if order is None:
        return str(made), dict
    return str(made), itemgetter(*order) if len(order) > 1 else lambda row: (row[order[0]],)

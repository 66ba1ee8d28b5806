"""Many rows into a table at once, and the hot questions: handed to the driver as they are.

SQLAlchemy makes each statement, once. It would also look at every value of every row and keep the
books of every execution, which takes ten times as long as a short statement itself; our columns
are texts, numbers, flags and bytes, which need no look.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from operator import itemgetter
from types import MappingProxyType
from typing import Any

import sqlalchemy as sa
from sqlalchemy.sql.compiler import SQLCompiler

Row = Mapping[str, Any]
_NOTHING: Row = MappingProxyType({})


def write(connection: sa.Connection, statement: sa.ClauseElement, rows: Sequence[Row]) -> None:
    """Execute the statement once for each row; without rows nothing happens."""
    if not rows:
        return
    text, arranged = _prepared(statement, tuple(rows[0]), connection.dialect)
    values = [arranged(row) for row in rows]
    if connection.dialect.name != "sqlite":
        connection.exec_driver_sql(text, values)
        return
    try:
        _driver(connection).executemany(text, values)
    except sqlite3.Error as error:
        raise _named(connection, error) from error


def fetch(
    connection: sa.Connection, statement: sa.Executable, values: Row = _NOTHING
) -> Sequence[Any]:
    """What a statement answers; the rows are tuples, and flags in them may be numbers.

    The statement is one that was made once. What an expanding parameter takes is a list that is
    not empty.
    """
    if connection.dialect.name != "sqlite":
        return connection.execute(statement, dict(values)).all()
    told = {n: _padded(v) if isinstance(v, list) else v for n, v in values.items()}
    shape = tuple((n, len(v) if isinstance(v, list) else 0) for n, v in told.items())
    question = _question(statement, shape, connection.dialect)
    told = {**question.constants, **told}
    for name, length in shape:
        if length:
            told.update((f"{name}_{n}", each) for n, each in enumerate(told[name], start=1))
    try:
        answer = _driver(connection).execute(question.text, [told[n] for n in question.names])
        return answer.fetchall()
    except sqlite3.Error as error:
        raise _named(connection, error) from error


def _driver(connection: sa.Connection) -> sqlite3.Connection:
    """The driver's own connection, in the transaction that SQLAlchemy would be in by now."""
    if not connection.in_transaction():
        connection.begin()
    driver: Any = connection.connection.driver_connection
    return driver  # type: ignore[no-any-return]


def _named(connection: sa.Connection, error: sqlite3.Error) -> BaseException:
    """The error as SQLAlchemy would have raised it, without the statement's values."""
    return sa.exc.DBAPIError.instance(None, None, error, sqlite3.Error, dialect=connection.dialect)


def _padded(members: list[Any]) -> list[Any]:
    """As many as a power of two, the last one repeated: so there are few texts of a statement."""
    wanted = 1 << (len(members) - 1).bit_length()
    return members + members[-1:] * (wanted - len(members))


@dataclass(frozen=True, slots=True)
class _Question:
    """A statement's text, its parameters in order, and those of them that never change."""

    text: str
    names: tuple[str, ...]
    constants: Row


@lru_cache(maxsize=256)
def _question(statement: Any, shape: tuple[tuple[str, int], ...], dialect: sa.Dialect) -> _Question:
    """The statement for values of these names; with a list's length, which is 0 for no list."""
    made = statement.compile(dialect=dialect)
    told = {name: [None] * length if length else None for name, length in shape}
    expanded = made.construct_expanded_state(told)
    return _Question(expanded.statement, tuple(expanded.positiontup), expanded.parameters)


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

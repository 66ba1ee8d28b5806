"""Many rows into a table at once, and the hot questions: handed to the driver as they are.

SQLAlchemy makes each statement, once. It would also look at every value of every row and keep the
books of every execution, which takes as long again as the driver itself; our columns are texts,
numbers, flags and bytes, which need no look.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from operator import itemgetter
from types import MappingProxyType
from typing import Any, TypeVar

import sqlalchemy as sa
from sqlalchemy.sql.compiler import SQLCompiler

Row = Mapping[str, Any]
# Reads the rows of an answer: tuples, in which flags may be numbers.
Answer = Callable[[], Sequence[Any]]
T = TypeVar("T")
# The same, made into something: read after ``together``.
Asked = Callable[[], T]
_NOTHING: Row = MappingProxyType({})


@contextmanager
def together(connection: sa.Connection) -> Iterator[None]:
    """What is written and asked inside goes to the server in one go, in this order.

    The first error of them is raised on leaving, at the latest. Answers are read after leaving,
    and nothing but this module's functions is used inside. On SQLite there is no way to save.
    """
    if connection.dialect.name == "sqlite":
        yield
        return
    driver = _driver(connection)
    try:
        with driver.pipeline():
            yield
    except connection.dialect.loaded_dbapi.Error as error:
        raise _named(connection, driver, error) from error


def write(connection: sa.Connection, statement: sa.ClauseElement, rows: Sequence[Row]) -> None:
    """Execute the statement once for each row; without rows nothing happens."""
    if not rows:
        return
    text, arranged = _prepared(statement, tuple(rows[0]), connection.dialect)
    driver = _driver(connection)
    try:
        if len(rows) == 1:
            driver.execute(text, arranged(rows[0]))
        else:
            driver.cursor().executemany(text, [arranged(row) for row in rows])
    except connection.dialect.loaded_dbapi.Error as error:
        raise _named(connection, driver, error) from error


def fetch(
    connection: sa.Connection, statement: sa.Executable, values: Row = _NOTHING
) -> Sequence[Any]:
    """What a statement answers; the rows are tuples, and flags in them may be numbers.

    The statement is one that was made once. What an expanding parameter takes is a list that is
    not empty.
    """
    driver = _driver(connection)
    answer = ask(connection, statement, values)
    try:
        return answer()
    except connection.dialect.loaded_dbapi.Error as error:
        raise _named(connection, driver, error) from error


def ask(connection: sa.Connection, statement: sa.Executable, values: Row = _NOTHING) -> Answer:
    """``fetch`` in two halves: what is sent now is read when it is called, after ``together``."""
    told = {n: _padded(v) if isinstance(v, list) else v for n, v in values.items()}
    shape = tuple((n, len(v) if isinstance(v, list) else 0) for n, v in told.items())
    question = _question(statement, shape, connection.dialect)
    told = {**question.constants, **told}
    for name, length in shape:
        if length:
            told.update((f"{name}_{n}", each) for n, each in enumerate(told[name], start=1))
    driver = _driver(connection)
    try:
        cursor = driver.execute(question.text, [told[n] for n in question.names])
    except connection.dialect.loaded_dbapi.Error as error:
        raise _named(connection, driver, error) from error
    answer: Answer = cursor.fetchall
    return answer


def _driver(connection: sa.Connection) -> Any:
    """The driver's own connection, in the transaction that SQLAlchemy would be in by now."""
    if not connection.in_transaction():
        connection.begin()
    return connection.connection.driver_connection


def _named(connection: sa.Connection, driver: Any, error: Any) -> BaseException:
    """The error as SQLAlchemy would have raised it, without the statement's values."""
    dialect = connection.dialect
    is_lost = dialect.is_disconnect(error, driver, None)
    if is_lost and not connection.invalidated:
        connection.invalidate(error)
    named: BaseException = sa.exc.DBAPIError.instance(
        None,
        None,
        error,
        dialect.loaded_dbapi.Error,
        connection_invalidated=is_lost,
        dialect=dialect,
    )
    return named


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
    assert order, "both drivers are told values by their place"  # noqa: S101 set by the engines
    return str(made), itemgetter(*order) if len(order) > 1 else lambda row: (row[order[0]],)

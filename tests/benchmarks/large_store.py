"""A store as it is after years: the rows of one file that was processed, many times over.

Lists and pages read it like any other. Only the chain of hashes is not one: nobody verifies it.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa

from app.store import tables as t
from app.store.engine import Store

_AT_ONCE = 50_000
_MONTH_MS = 30 * 86_400_000
_CAUSES = 12
# More numbers than the rows of one file take.
_STRIDE = 128
# The columns in which a copy must differ: by a text behind it, or by a distance.
_TEXTS = {"stream", "id", "event", "work", "message", "event_id", "delivery_id", "file_id"}
_NUMBERS = {"id", "event", "position", "payload"}
_COPIED = (
    t.files,
    t.jobs,
    t.messages,
    t.artifacts,
    t.receipts,
    t.payloads,
    t.events,
    t.private_parts,
    t.positions,
    t.attempts,
)


@dataclass(frozen=True)
class Size:
    """How much there is to be: events come of the files, about six each."""

    files: int
    dead: int

    @staticmethod
    def asked() -> Size:
        """As the environment says; a small one without a word."""
        return Size(int(os.environ.get("FILES", "20000")), int(os.environ.get("DEAD", "1000")))


def grow(store: Store, size: Size, *, now_ms: int) -> dict[str, int]:
    """Copy the rows that are there until there are so many files; gives the number of rows."""
    with store.writing.begin() as connection:
        templates = {table: _rows(connection, table) for table in _COPIED}
    for first in range(1, size.files, _AT_ONCE):
        last = min(first + _AT_ONCE, size.files) - 1
        with store.writing.begin() as connection:
            for table, rows in templates.items():
                for row in rows:
                    connection.execute(_copies(table, row, (first, last), size, now_ms))
    with store.writing.begin() as connection:
        connection.exec_driver_sql("ANALYZE")
        counts = {
            table.name: connection.execute(sa.select(sa.func.count()).select_from(table)).scalar()
            for table in _COPIED
        }
    return {name: int(count or 0) for name, count in counts.items()}


def _rows(connection: sa.Connection, table: sa.Table) -> list[dict[str, Any]]:
    """The rows of the file; what an installation tells of itself is not copied."""
    query = sa.select(table)
    if table is t.events:
        query = query.where(t.events.c.stream.like("fil%"))
    if table in {t.positions, t.private_parts}:
        of_file = sa.select(t.events.c.id).where(t.events.c.stream.like("fil%"))
        query = query.where(table.c.event.in_(of_file))
    return [dict(row._mapping) for row in connection.execute(query)]


def _copies(
    table: sa.Table, row: dict[str, Any], span: tuple[int, int], size: Size, now_ms: int
) -> sa.Insert:
    first, last = span
    numbers = sa.select(sa.literal(first).label("n")).cte("numbers", recursive=True)
    numbers = numbers.union_all(sa.select(numbers.c.n + 1).where(numbers.c.n < last))
    n: sa.ColumnElement[Any] = numbers.c.n
    at_ms = now_ms - _MONTH_MS + sa.cast(n, sa.BigInteger) * (_MONTH_MS // size.files)
    values = {
        name: sa.cast(_value(table, row, name, n, at_ms, size.dead), table.c[name].type)
        for name in row
    }
    source = sa.select(*(values[name].label(name) for name in row))
    return table.insert().from_select(list(row), source)


def _value(
    table: sa.Table,
    row: dict[str, Any],
    name: str,
    n: sa.ColumnElement[Any],
    at_ms: sa.ColumnElement[Any],
    dead: int,
) -> sa.ColumnElement[Any]:
    value = row[name]
    number = sa.cast(n, sa.Text)
    column = table.c[name]
    if name in _TEXTS and isinstance(value, str) and value:
        return sa.literal(f"{value}-").concat(number)
    if name.endswith("_ms") and value:
        return at_ms
    if name in _NUMBERS and isinstance(value, int):
        return sa.literal(value) + n * _STRIDE
    if name in {"name", "folded_name"} and table is t.files:
        return sa.literal("invoice ").concat(sa.cast(n + 1_000_000, sa.Text)).concat(".pdf")
    was = sa.literal(value, column.type)
    is_step = table is t.jobs and row["kind"] == "transform"
    if table is t.files and name == "state":
        return sa.case((n <= dead, "failed"), else_=was)
    if table is t.messages or is_step:
        is_dead = sa.and_(n <= dead, n % 2 == int(is_step))
        if name == "state":
            return sa.case((is_dead, "dead"), else_=was)
        if name == "error":
            why = sa.literal("answered 422: field ").concat(sa.cast(n % _CAUSES, sa.Text))
            return sa.case((is_dead, why), else_=was)
    return was

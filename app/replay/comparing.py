"""Rows as the log makes them against rows as they are, column by column."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa

from app.store.projections import Row
from app.store.rebuilding import Rows, key_of

_SHOWN_CHARS = 80
_HIDDEN = "differs"


@dataclass(frozen=True, slots=True)
class Difference:
    """A value that differs; without a column the whole row is on one side only.

    A value that is private reads "differs".
    """

    table: str
    key: str
    column: str
    live: str
    folded: str


def differences(folded: Mapping[sa.Table, Iterable[Row]], live: Rows) -> Iterator[Difference]:
    """Every difference between the folded rows and the live ones."""
    for table, wanted in folded.items():
        key = key_of(table)
        there = live[table]
        rows = {row[key]: row for row in wanted}
        for name, row in rows.items():
            if (other := there.get(name)) is None:
                yield Difference(table.name, name, "", "missing", "present")
            elif other != row:
                yield from _columns(table, name, other, row)
        for name in sorted(there.keys() - rows.keys()):
            yield Difference(table.name, name, "", "present", "missing")


def _columns(table: sa.Table, key: str, live: Row, folded: Row) -> Iterator[Difference]:
    for column in table.columns:
        name = column.name
        if live[name] != folded[name]:
            is_hidden = bool(column.info.get("private"))
            shown = [_HIDDEN if is_hidden else _shown(row[name]) for row in (live, folded)]
            yield Difference(table.name, key, name, *shown)


def _shown(value: Any) -> str:
    return f"{value}"[:_SHOWN_CHARS]

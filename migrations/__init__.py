"""The schema's numbered steps. Every one of them says with whom its tables go together.

A step is a module with ``upgrade()``, and with

``OLDEST``
    the oldest version of the schema whose program works on the tables after the step, because the
    step only adds: tables, columns that may be left out, indexes that refuse nothing. Without it,
    none but the step's own.
``INDEXES``
    the indexes that the step adds to tables and columns that were there before it. ``upgrade()``
    adds them with ``add_indexes``; where others are at work on the store, they are built beside
    them first, for an index that is built in a transaction keeps everyone from writing until it is
    there. An index on a column that is new to a table which may be full is a step of its own.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from alembic import op


@dataclass(frozen=True, slots=True)
class Index:
    """An index: ``columns`` and ``where`` as SQL has them."""

    name: str
    table: str
    columns: str
    where: str = ""

    def statement(self, *, beside: bool = False) -> str:
        """What makes it, if it is not there; ``beside`` others who write meanwhile (PostgreSQL)."""
        how = "CONCURRENTLY " if beside else ""
        where = f" WHERE {self.where}" if self.where else ""
        return (
            f"CREATE INDEX {how}IF NOT EXISTS {self.name} ON {self.table} ({self.columns}){where}"
        )


def add_indexes(indexes: Iterable[Index]) -> None:
    """Make those that are not there."""
    for index in indexes:
        op.execute(index.statement())

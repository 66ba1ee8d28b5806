"""What was answered to the first delivery of each source event: kept for ever, told again."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql, sqlite

from app.store import tables as t
from domain.ids import ID_LENGTH


@dataclass(frozen=True, slots=True)
class Receipt:
    """The first delivery of a source event and what it was answered.

    ``digest`` is of the raw body, ``comparison`` of what ``rule`` compares; a repeat is judged
    under the stored rule. ``payload`` is the number of the stored body, 0 where none is kept.
    """

    event: str
    id: int
    source: str
    stream: str
    verdict: str
    digest: str
    comparison: str
    rule: str
    accepted_ms: int
    type: str
    event_id: str
    delivery_id: str
    key_id: str
    payload: int

    @property
    def name(self) -> str:
        """The receipt's public id."""
        return receipt_name(self.event)


def receipt_name(event: str) -> str:
    """The public id of the receipt of this source event."""
    return "rcp_" + event.removeprefix("evt_")


def event_of(receipt: str) -> str:
    """The source event that a receipt's public id names, "" if it is none."""
    tail = receipt.removeprefix("rcp_")
    return "evt_" + tail if tail != receipt and len(tail) == ID_LENGTH else ""


def insert(connection: sa.Connection, receipts: Iterable[Receipt]) -> frozenset[str]:
    """Insert those that are new, sorted by key; gives the source events that were."""
    rows = [_row(receipt) for receipt in sorted(receipts, key=_by_event)]
    if not rows:
        return frozenset()
    return frozenset(connection.execute(_insert(connection.dialect.name), rows).scalars())


@cache
def _insert(dialect: str) -> sa.Executable:
    insert = sqlite.insert if dialect == "sqlite" else postgresql.insert
    new = insert(t.receipts).on_conflict_do_nothing(index_elements=["event"])
    return new.returning(t.receipts.c.event)


def find(connection: sa.Connection, events: Iterable[str]) -> dict[str, Receipt]:
    """The receipts of these source events, as far as there are any."""
    query = sa.select(t.receipts).where(t.receipts.c.event.in_(list(events)))
    return {row.event: of_row(row) for row in connection.execute(query)}


def _row(receipt: Receipt) -> dict[str, Any]:
    return {name: getattr(receipt, name) for name in Receipt.__dataclass_fields__}


def of_row(row: sa.Row[Any]) -> Receipt:
    """The receipt that a row holds; what was erased reads as ""."""
    fields = dict(row._mapping)  # noqa: SLF001 - SQLAlchemy's public way to a row's mapping
    return Receipt(**(fields | {k: fields[k] or "" for k in ("event_id", "delivery_id")}))


def _by_event(receipt: Receipt) -> str:
    return receipt.event

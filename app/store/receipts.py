"""What was answered to the first delivery of each source event: kept for ever, told again."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from operator import attrgetter
from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql

from app.store import rows
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


_FIELDS = tuple(Receipt.__dataclass_fields__)
_values_of = attrgetter(*_FIELDS)


def receipt_name(event: str) -> str:
    """The public id of the receipt of this source event."""
    return "rcp_" + event.removeprefix("evt_")


def event_of(receipt: str) -> str:
    """The source event that a receipt's public id names, "" if it is none."""
    tail = receipt.removeprefix("rcp_")
    return "evt_" + tail if tail != receipt and len(tail) == ID_LENGTH else ""


def insert(connection: sa.Connection, receipts: Iterable[Receipt]) -> frozenset[str]:
    """Insert those that are new, sorted by key; gives the source events that were."""
    ordered = [_row(receipt) for receipt in sorted(receipts, key=_by_event)]
    if not ordered:
        return frozenset()
    if connection.dialect.name != "sqlite":
        with rows.together(connection):
            taken = [rows.ask(connection, _IF_NEW, row) for row in ordered]
        return frozenset(event for answer in taken for (event,) in answer())
    # Nobody else writes: what is not there now is new, and need not be asked for row by row.
    known = rows.fetch(connection, _KNOWN, {"events": [row["event"] for row in ordered]})
    old = {event for (event,) in known}
    new = [row for row in ordered if row["event"] not in old]
    rows.write(connection, _INSERT, new)
    return frozenset(row["event"] for row in new)


_INSERT = t.receipts.insert()
_IF_NEW = (
    postgresql.insert(t.receipts)
    .on_conflict_do_nothing(index_elements=["event"])
    .returning(t.receipts.c.event)
)
_KNOWN = sa.select(t.receipts.c.event).where(
    t.receipts.c.event.in_(sa.bindparam("events", expanding=True))
)


def find(connection: sa.Connection, events: Iterable[str]) -> dict[str, Receipt]:
    """The receipts of these source events, as far as there are any."""
    query = sa.select(t.receipts).where(t.receipts.c.event.in_(list(events)))
    return {row.event: of_row(row) for row in connection.execute(query)}


def _row(receipt: Receipt) -> dict[str, Any]:
    return dict(zip(_FIELDS, _values_of(receipt), strict=True))


def of_row(row: sa.Row[Any]) -> Receipt:
    """The receipt that a row holds; what was erased reads as ""."""
    fields = dict(row._mapping)  # noqa: SLF001 - SQLAlchemy's public way to a row's mapping
    return Receipt(**(fields | {k: fields[k] or "" for k in ("event_id", "delivery_id")}))


def _by_event(receipt: Receipt) -> str:
    return receipt.event

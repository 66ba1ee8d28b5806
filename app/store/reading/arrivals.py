"""What came in: first deliveries, which are receipts, and all that came beside them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa

from app.store import receipts
from app.store import tables as t
from app.store.codec import decode_file
from app.store.reading.pages import Ask, Page, encode_cursor, select_page
from app.store.receipts import Receipt
from domain.states import File

_FIRST = ("accepted", "ignored", "stale")


@dataclass(frozen=True, slots=True)
class Arrived:
    """One delivery. ``number`` is its place in the order of arrival, ``event`` its source event."""

    number: int
    source: str
    verdict: str
    received_ms: int
    reason: str
    event: str
    event_id: str
    delivery_id: str
    digest: str
    key_id: str
    payload: int
    settled: str
    count: int


@dataclass(frozen=True, slots=True)
class Told:
    """A source event: its receipt, the file it is about, and the deliveries that told it."""

    receipt: Receipt
    file: File | None
    delivery_ids: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ArrivalFilter:
    """Which deliveries or source events are wanted."""

    source: str = ""
    verdict: str = ""
    event_id: str = ""
    sources: tuple[str, ...] | None = None


def deliveries(connection: sa.Connection, wanted: ArrivalFilter, ask: Ask) -> Page[Arrived]:
    """Deliveries of all kinds, the last first."""
    found: list[Arrived] = []
    is_more = False
    if wanted.verdict in {"", *_FIRST}:
        query = _filtered(sa.select(t.receipts), t.receipts, wanted)
        page = select_page(connection, query, (t.receipts.c.id,), ask)
        found += [_first(row) for row in page.items]
        is_more = page.next is not None
    if wanted.verdict not in _FIRST:
        query = _filtered(sa.select(t.deliveries), t.deliveries, wanted)
        page = select_page(connection, query, (t.deliveries.c.id,), ask)
        found += [_later(row) for row in page.items]
        is_more = is_more or page.next is not None
    # Both gave their newest: what is beyond this page is found again by the next.
    found.sort(key=lambda arrived: -arrived.number)
    is_more = is_more or len(found) > ask.rows
    found = found[: ask.rows]
    return Page(found, encode_cursor((found[-1].number,)) if is_more else None)


def delivery(connection: sa.Connection, number: int) -> Arrived | None:
    """One delivery by its number."""
    row = connection.execute(sa.select(t.deliveries).where(t.deliveries.c.id == number)).first()
    if row is not None:
        return _later(row)
    row = connection.execute(sa.select(t.receipts).where(t.receipts.c.id == number)).first()
    return None if row is None else _first(row)


def about(connection: sa.Connection, stream: str, *, limit: int) -> list[Arrived]:
    """The deliveries that told something of a file, the first first."""
    firsts = sa.select(t.receipts).where(t.receipts.c.stream == stream)
    found = [
        _first(row) for row in connection.execute(firsts.order_by(t.receipts.c.id).limit(limit))
    ]
    told_again = t.deliveries.c.event.in_([arrived.event for arrived in found])
    later = sa.select(t.deliveries).where(told_again).order_by(t.deliveries.c.id).limit(limit)
    found += [_later(row) for row in connection.execute(later)]
    return sorted(found, key=lambda arrived: arrived.number)[:limit]


def payload(connection: sa.Connection, number: int) -> bytes | None:
    """A stored body; ``None`` where none was kept or it was removed."""
    query = sa.select(t.payloads.c.body).where(t.payloads.c.id == number)
    found = connection.execute(query).scalar()
    return None if found is None else bytes(found)


def told(connection: sa.Connection, wanted: ArrivalFilter, ask: Ask) -> Page[Told]:
    """Source events, the last accepted first."""
    query = _filtered(sa.select(t.receipts), t.receipts, wanted)
    page = select_page(connection, query, (t.receipts.c.id,), ask)
    found = [receipts.of_row(row) for row in page.items]
    return Page(_with_files(connection, found), page.next)


def told_once(connection: sa.Connection, event: str) -> Told | None:
    """One source event by its derived id."""
    found = receipts.find(connection, [event]).get(event)
    return None if found is None else _with_files(connection, [found])[0]


def _with_files(connection: sa.Connection, found: list[Receipt]) -> list[Told]:
    streams = {receipt.stream for receipt in found if receipt.stream}
    query = sa.select(t.files.c.stream, t.files.c.body).where(t.files.c.stream.in_(streams))
    files = {stream: decode_file(body) for stream, body in connection.execute(query)}
    ids = _delivery_ids(connection, [receipt.event for receipt in found])
    return [
        Told(r, files.get(r.stream), tuple(dict.fromkeys([r.delivery_id, *ids.get(r.event, ())])))
        for r in found
    ]


def _delivery_ids(connection: sa.Connection, events: Iterable[str]) -> dict[str, list[str]]:
    query = (
        sa.select(t.deliveries.c.event, t.deliveries.c.delivery_id)
        .where(t.deliveries.c.event.in_(list(events)), t.deliveries.c.delivery_id.is_not(None))
        .order_by(t.deliveries.c.id)
        .limit(1000)
    )
    found: dict[str, list[str]] = {}
    for event, delivery_id in connection.execute(query):
        found.setdefault(event, []).append(delivery_id)
    return found


def _filtered(query: sa.Select[Any], table: sa.Table, wanted: ArrivalFilter) -> sa.Select[Any]:
    for column, value in (
        (table.c.source, wanted.source),
        (table.c.verdict, wanted.verdict),
        (table.c.event_id, wanted.event_id),
    ):
        query = query.where(column == value) if value else query
    if wanted.sources is not None:
        query = query.where(table.c.source.in_(wanted.sources))
    return query


def _first(row: sa.Row[Any]) -> Arrived:
    return Arrived(
        number=row.id,
        source=row.source,
        verdict=row.verdict,
        received_ms=row.accepted_ms,
        reason="",
        event=row.event,
        event_id=row.event_id or "",
        delivery_id=row.delivery_id or "",
        digest=row.digest,
        key_id=row.key_id,
        payload=row.payload,
        settled="",
        count=1,
    )


def _later(row: sa.Row[Any]) -> Arrived:
    return Arrived(
        number=row.id,
        source=row.source,
        verdict=row.verdict,
        received_ms=row.received_ms,
        reason=row.reason,
        event=row.event or "",
        event_id=row.event_id or "",
        delivery_id=row.delivery_id or "",
        digest=row.digest,
        key_id=row.key_id,
        payload=row.payload or 0,
        settled=row.settled,
        count=row._mapping[t.deliveries.c.count],  # noqa: SLF001 - rows have a method of that name
    )

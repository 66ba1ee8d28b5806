"""What came in: source events, receipts, deliveries, and the two ways out of a conflict."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

from litestar import get, post
from litestar.params import FromPath, FromQuery, JSONBody
from msgspec import Struct

from app.config import Source
from app.ledger import entries
from app.ledger.entries import Origin
from app.ledger.requests import Accept, Control
from app.store import receipts
from app.store.reading import arrivals
from app.store.reading.arrivals import ArrivalFilter, Arrived, Told
from app.web.api.office import (
    Asker,
    Cursor,
    Here,
    InState,
    Limit,
    Listing,
    Office,
    Reasoned,
    at,
    paged,
    there,
)
from app.web.api.orders import Call, IdempotencyKey, Ordered, control, once, submit
from app.web.api.shapes import ArtifactOut, artifact_out, artifacts_of
from app.web.auth import Who, needs
from app.web.problems import Problem
from app.web.rest import ProblemError
from domain import canonical, masking, profiles, strict_json
from domain.installation import BodyShown, ConflictResolved
from domain.profiles import Mapped, SourceEvent
from domain.schemes import Request
from domain.states import File, Version
from domain.strict_json import InvalidJson
from domain.telling import EPOCH
from domain.work import VersionPhase

_TAGS = ["arrivals"]
_MARK = "dlv_"
_STATES: dict[VersionPhase, str] = {
    "received": "received",
    "downloading": "processing",
    "transforming": "processing",
    "notifying": "processing",
    "completed": "processed",
    "failed": "failed",
    "superseded": "stale",
    "ignored": "ignored",
    "deleted": "processed",
    "discarded": "discarded",
}


class SourceEventOut(Struct):
    """What a source told; ``event`` is our own id of it, ``file`` the id of the file."""

    event: str
    source: str
    event_id: str
    delivery_ids: list[str]
    type: str
    file: str | None
    file_id: str | None
    version: str | None
    project: str | None
    occurred_at: str | None
    accepted_at: str | None
    state: str
    attempts: int
    error: str
    result: list[ArtifactOut]
    receipt: str


class ReceiptOut(Struct):
    """A receipt as it was answered, and the state now."""

    id: str
    event_id: str
    accepted_at: str | None
    digest: str
    source: str
    verdict: str
    file: str | None
    state: str


class DeliveryOut(Struct):
    """One attempt to tell us. ``count`` is of refusals of the same kind that are one row."""

    id: str
    source: str
    verdict: str
    received_at: str | None
    reason: str
    event: str | None
    event_id: str
    delivery_id: str
    digest: str
    key_id: str
    settled: str
    count: int
    body: str | None = None
    body_is_masked: bool = False


@get(
    "/source-events",
    guards=[needs("viewer")],
    sync_to_thread=True,
    summary="What sources told",
    tags=_TAGS,
)
def event_list(
    office: Here,
    who: Asker,
    source: FromQuery[str] = "",
    event_id: FromQuery[str] = "",
    in_state: InState = "",
    limit: Limit = 50,
    cursor: Cursor = "",
) -> Listing[SourceEventOut]:
    """Source events, the last accepted first. With ``state`` a page may hold fewer than asked."""
    wanted = ArrivalFilter(source=source, event_id=event_id, sources=who.sources)
    with office.store.read() as connection:
        page = paged(limit, cursor, lambda ask: arrivals.told(connection, wanted, ask), _event)
    kept = [item for item in page.items if not in_state or item.state == in_state]
    return Listing(kept, page.next)


@get(
    "/receipts/{receipt:str}",
    guards=[needs("viewer")],
    sync_to_thread=True,
    summary="A receipt",
    tags=_TAGS,
)
def receipt_one(office: Here, who: Asker, receipt: FromPath[str]) -> ReceiptOut:
    """The receipt that the first delivery of an event was answered with, and its state now."""
    with office.store.read() as connection:
        told = there(arrivals.told_once(connection, receipts.event_of(receipt)))
    there(told if who.sees(told.receipt.source) else None)
    found = told.receipt
    return ReceiptOut(
        id=found.name,
        event_id=found.event_id,
        accepted_at=at(found.accepted_ms),
        digest=f"sha256:{found.digest}",
        source=found.source,
        verdict=found.verdict,
        file=found.stream or None,
        state=_event(told).state,
    )


@get("/deliveries", guards=[needs("viewer")], sync_to_thread=True, summary="Deliveries", tags=_TAGS)
def delivery_list(
    office: Here,
    who: Asker,
    source: FromQuery[str] = "",
    verdict: FromQuery[str] = "",
    event_id: FromQuery[str] = "",
    limit: Limit = 50,
    cursor: Cursor = "",
) -> Listing[DeliveryOut]:
    """Every attempt to tell us, the last first; refusals are counted and sampled."""
    wanted = ArrivalFilter(source=source, verdict=verdict, event_id=event_id, sources=who.sources)
    with office.store.read() as connection:
        return paged(
            limit, cursor, lambda ask: arrivals.deliveries(connection, wanted, ask), delivery_out
        )


@get(
    "/deliveries/{delivery:str}",
    guards=[needs("viewer")],
    sync_to_thread=True,
    summary="A delivery",
    tags=_TAGS,
)
def delivery_one(
    office: Here, who: Asker, delivery: FromPath[str], full: FromQuery[bool] = False
) -> DeliveryOut:
    """A delivery and its body: masked, or in full for an admin who asks so, which is recorded."""
    found, body = _visible(office, who, delivery)
    shown = delivery_out(found)
    if body is None:
        return shown
    if full and who.role == "admin":
        event = BodyShown(at_ms=office.now_ms, delivery=delivery)
        control(office, event, who, "asked for the whole body")
        shown.body = body.decode("utf-8", "replace")
        return shown
    shown.body = _masked(office.config.source(found.source), body)
    shown.body_is_masked = True
    return shown


@post(
    "/deliveries/{delivery:str}/accept-as-new",
    guards=[needs("operator")],
    status_code=200,
    sync_to_thread=True,
    summary="Take a conflicting delivery as a new event",
    tags=_TAGS,
)
def delivery_accept(
    office: Here,
    who: Asker,
    delivery: FromPath[str],
    data: JSONBody[Reasoned],
    key: IdempotencyKey = "",
) -> Ordered:
    """The delivery becomes an event of its own; what came first under its id stays as it is."""
    found, body = _conflict(office, who, delivery)
    accept = _as_new(office, found, there(body))
    event = ConflictResolved(at_ms=office.now_ms, delivery=str(found.number), outcome="accepted")
    settle = Control(event, who.cause(data.reason))
    call = Call(f"accept {delivery}", data, key)
    return once(office, who, call, lambda: submit(office, settle, accept), Ordered)


@post(
    "/deliveries/{delivery:str}/dismiss",
    guards=[needs("operator")],
    status_code=200,
    sync_to_thread=True,
    summary="Dismiss a conflicting delivery",
    tags=_TAGS,
)
def delivery_dismiss(
    office: Here,
    who: Asker,
    delivery: FromPath[str],
    data: JSONBody[Reasoned],
    key: IdempotencyKey = "",
) -> Ordered:
    """The delivery stays without effect, and needs nobody any more."""
    found, _ = _conflict(office, who, delivery)
    event = ConflictResolved(at_ms=office.now_ms, delivery=str(found.number), outcome="dismissed")
    call = Call(f"dismiss {delivery}", data, key)
    work = partial(control, office, event, who, data.reason)
    return once(office, who, call, work, Ordered)


def _visible(office: Office, who: Who, delivery: str) -> tuple[Arrived, bytes | None]:
    digits = delivery.removeprefix(_MARK)
    is_number = digits.isascii() and digits.isdecimal() and len(digits) < len("1" * 19)
    with office.store.read() as connection:
        found = there(arrivals.delivery(connection, int(digits)) if is_number else None)
        there(found if who.sees(found.source) else None)
        return found, arrivals.payload(connection, found.payload) if found.payload else None


def _conflict(office: Office, who: Who, delivery: str) -> tuple[Arrived, bytes | None]:
    found, body = _visible(office, who, delivery)
    if found.verdict != "conflict":
        detail = f"the delivery is {found.verdict}, no conflict"
        raise ProblemError(Problem(409, "conflict", detail))
    return found, body


def _as_new(office: Office, found: Arrived, body: bytes) -> Accept:
    """The request to accept these bytes under an id of their own."""
    source = office.config.source(found.source)
    told = _told_again(there(source), found, body)
    if told is None:
        detail = "its content cannot be read without the request that carried it"
        raise ProblemError(Problem(409, "conflict", detail))
    now = office.clock.now()
    origin = Origin(
        source=there(source),
        key=office.ledger.book.key,
        key_id=found.key_id,
        received_at=now,
    )
    # Derived, so that accepting it twice is still one event.
    told = replace(told, event_id=f"{found.event_id}~{found.digest[:16]}")
    return entries.whole(origin, told, body)


def _told_again(source: Source, found: Arrived, body: bytes) -> SourceEvent | None:
    # An entry of a batch was kept by itself.
    ready = source.ready if source.ready.batch is None else replace(source.ready, batch=None)
    if ready.profile.items is not None:
        return None
    reading = profiles.read(ready, _request(source, found, body), EPOCH)
    match reading:
        case Mapped(events=(SourceEvent() as told,)):
            return told
        case _:
            return None


def _request(source: Source, found: Arrived, body: bytes) -> Request:
    """The delivery as far as it was kept: the ids that came in headers are put back there."""
    mapping = source.ready.mapping
    headers = {
        place.removeprefix("header:").lower(): value
        for where, value in (
            (mapping.event_id, found.event_id),
            (mapping.delivery_id, found.delivery_id),
        )
        for place in ((where,) if isinstance(where, str) else where)
        if place.startswith("header:") and value
    }
    return Request("POST", "", "", "", tuple(headers.items()), body)


def _masked(source: Source | None, body: bytes) -> str:
    value = strict_json.parse_value(body)
    if isinstance(value, InvalidJson):
        return f"[{len(body)} bytes]"
    if source is not None and source.private_fields:
        return canonical.encode(masking.masked(value, source.private_fields)).decode()
    return canonical.encode(masking.all_masked(value)).decode()


def _event(told: Told) -> SourceEventOut:
    found, file = told.receipt, told.file
    version = _version_of(file, found.event)
    return SourceEventOut(
        event=found.event,
        source=found.source,
        event_id=found.event_id,
        delivery_ids=[i for i in told.delivery_ids if i],
        type=found.type,
        file=found.stream or None,
        file_id=file.file_id if file else None,
        version=version.version if version else None,
        project=file.project if file else None,
        occurred_at=_occurred(file, found.event),
        accepted_at=at(found.accepted_ms),
        state=_state(told, version),
        attempts=sum(file.jobs[j].attempts for j in version.jobs if j in file.jobs)
        if file and version
        else 0,
        error=version.error if version else "",
        result=[artifact_out(a) for a in artifacts_of(file, version)] if file and version else [],
        receipt=found.name,
    )


def _version_of(file: File | None, event: str) -> Version | None:
    if file is None:
        return None
    named = (f.version for f in file.facts if f.event == event and f.kind == "version")
    return file.versions.get(next(named, ""))


def _occurred(file: File | None, event: str) -> str | None:
    facts = file.facts if file else ()
    at_us = next((fact.at_us for fact in facts if fact.event == event), None)
    return at(at_us // 1000) if at_us else None


def _state(told: Told, version: Version | None) -> str:
    if told.receipt.verdict != "accepted":
        return told.receipt.verdict
    return _STATES[version.phase] if version else "processed"


def delivery_out(found: Arrived) -> DeliveryOut:
    """A delivery as it is shown, without its body."""
    return DeliveryOut(
        id=f"{_MARK}{found.number}",
        source=found.source,
        verdict=found.verdict,
        received_at=at(found.received_ms),
        reason=found.reason,
        event=found.event or None,
        event_id=found.event_id,
        delivery_id=found.delivery_id,
        digest=f"sha256:{found.digest}" if found.digest else "",
        key_id=found.key_id,
        settled=found.settled,
        count=found.count,
    )


HANDLERS: list[Any] = [
    event_list,
    receipt_one,
    delivery_list,
    delivery_one,
    delivery_accept,
    delivery_dismiss,
]

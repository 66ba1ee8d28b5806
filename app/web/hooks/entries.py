"""From what a source told to what the Ledger is asked to accept."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

from app.config import Source
from app.ledger.requests import Accept
from app.store.receipts import receipt_name
from domain import canonical, commands, comparison, masking, strict_json
from domain.commands import AnyFileCommand, Cause
from domain.ids import derive
from domain.installation import SubscriptionNoticed
from domain.order import comparable
from domain.profiles import SourceEvent
from domain.schemes import Request
from domain.strict_json import InvalidJson, JsonValue

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
_TRACE = re.compile(r"[0-9a-f]{2}-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}", re.ASCII)


@dataclass(frozen=True, slots=True)
class Arrival:
    """What all entries of one delivery share: where it came to, when, and who proved it.

    ``deadline`` is when the source stops waiting, on the clock that never runs backwards.
    ``span`` is the context of our own span around it, where spans are kept.
    """

    source: Source
    request: Request
    key: bytes
    key_id: str
    received_at: datetime
    deadline: float
    span: str = ""

    @property
    def received_ms(self) -> int:
        """When it arrived, in milliseconds since 1970."""
        return int(self.received_at.timestamp() * 1000)

    @property
    def trace(self) -> str:
        """The W3C trace context that its events belong to: our own, or the one that came along."""
        return self.span or trace_told(self.request)

    @property
    def identity(self) -> str:
        """The source's name in derived ids: the first that it ever had."""
        return self.source.was[0] if self.source.was else self.source.name

    def event(self, event_id: str) -> str:
        """The derived id of a source event."""
        return derive(self.key, "evt", self.identity, event_id)


def trace_told(request: Request) -> str:
    """The W3C trace context that came along; "" for none or a broken one."""
    told = request.header("traceparent") or ""
    return told if _TRACE.fullmatch(told) else ""


def whole(arrival: Arrival, told: SourceEvent) -> Accept:
    """The only event of a delivery: its bytes are the delivery's."""
    body = arrival.request.body
    return _accept(arrival, told, body, partial(comparison.comparison, body))


def item(arrival: Arrival, told: SourceEvent) -> Accept:
    """One entry of a batch: it has no bytes of its own, so its canonical form counts."""
    body = canonical.encode(told.item)
    return _accept(arrival, told, body, partial(comparison.comparison_of, told.item))


def _accept(arrival: Arrival, told: SourceEvent, body: bytes, compare: partial[str]) -> Accept:
    source = arrival.source
    event = arrival.event(told.event_id)
    stream = derive(arrival.key, "fil", arrival.identity, told.file_id) if told.file_id else ""
    cause = Cause("delivery", receipt_name(event), trace=arrival.trace)
    command = _command(arrival, told, cause, (event, stream))
    return Accept(
        source=source.name,
        event=event,
        event_id=told.event_id,
        delivery_id=told.delivery_id,
        type=told.type,
        stream=stream if command else "",
        digest=hashlib.sha256(body).hexdigest(),
        rule=source.ready.rule,
        compare=compare,
        received_ms=arrival.received_ms,
        key_id=arrival.key_id,
        body=kept(source, body),
        command=command,
        control=None if command else _notice(arrival, told, event),
        cause=cause,
        retries_failed=source.repeat_of_failed == "retry",
        verdict="ignored" if told.action == "ignore" else "accepted",
    )


def only_known(arrival: Arrival, event_id: str, body: bytes) -> Accept:
    """A delivery that breaks the contract, of an event that is known: for its receipt alone."""
    told = SourceEvent(event_id=event_id, type="", action="ignore")
    return _accept(arrival, told, body, partial(comparison.comparison, body))


def item_known(arrival: Arrival, event_id: str, value: JsonValue) -> Accept:
    """The same for an entry of a batch."""
    told = SourceEvent(event_id=event_id, type="", action="ignore", item=value)
    return item(arrival, told)


def kept(source: Source, body: bytes) -> bytes | None:
    """What of a body is stored, as the source says."""
    if source.keep_body == "full":
        return body
    if source.keep_body == "none":
        return None
    value = strict_json.parse_value(body)
    if isinstance(value, InvalidJson):
        return None
    return canonical.encode(masking.masked(value, source.private_fields))


def _command(
    arrival: Arrival, told: SourceEvent, cause: Cause, ids: tuple[str, str]
) -> AnyFileCommand | None:
    event, stream = ids
    if not told.file_id or told.action in {"lifecycle", "changed"}:
        return None
    shared: dict[str, Any] = {
        "stream": stream,
        "cause": cause,
        "source": arrival.source.name,
        "event": event,
        "event_id": told.event_id,
        "file_id": told.file_id,
        "project": told.project,
        "sequence": told.sequence,
        "occurred_us": micros(told.occurred_at),
    }
    match told.action:
        case "version":
            return _version(told, event, shared)
        case "deleted":
            return commands.ReportDeletion(**shared)
        case "restored":
            return commands.ReportRestoration(**shared)
        case "renamed":
            return commands.ReportRename(name=told.name, **shared)
        case _:
            return commands.ReportIgnored(type=told.type, **shared)


def _version(told: SourceEvent, event: str, shared: dict[str, Any]) -> commands.ReportVersion:
    # An event id that stands in for a version enters as its derived id: what may have to be
    # forgotten is in no hashed bytes.
    version = told.version if told.version and told.version != told.event_id else event
    value = told.order
    if value is not None and told.comparator is not None:
        value = comparable(value, told.comparator)
    return commands.ReportVersion(
        version=version,
        value=value,
        name=told.name,
        size_bytes=told.size_bytes,
        sha256=told.sha256,
        media_type=told.media_type,
        type=told.type,
        url=told.url,
        **shared,
    )


def _notice(arrival: Arrival, told: SourceEvent, event: str) -> SubscriptionNoticed:
    return SubscriptionNoticed(
        at_ms=arrival.received_ms,
        source=arrival.source.name,
        event=event,
        sequence=told.sequence,
        occurred_us=micros(told.occurred_at),
        event_id=told.event_id,
        file_id=told.file_id,
        project=told.project,
        type=told.type,
    )


def micros(at: datetime | None) -> int | None:
    """An instant in microseconds since 1970."""
    return None if at is None else (at - _EPOCH) // _MICROSECOND

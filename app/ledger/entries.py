"""From what a source told to what the Ledger is asked to accept."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

from app.config import Source
from app.ledger.requests import Accept
from app.store.receipts import receipt_name
from app.store.walks import Wake
from domain import canonical, commands, comparison, masking, strict_json
from domain.commands import AnyFileCommand, Cause
from domain.ids import derive
from domain.installation import SubscriptionNoticed
from domain.order import comparable
from domain.profiles import SourceEvent
from domain.strict_json import InvalidJson, JsonValue

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
# Notices that say that others were lost: what they told has to be looked for.
_MISSED = frozenset({"missed"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Origin:
    """What all entries that were told together share: who told them, and when we heard it.

    ``key`` is the installation's, ``key_id`` that of the secret that proved them, ``trace`` the
    W3C trace context that came along.
    """

    source: Source
    key: bytes
    received_at: datetime
    key_id: str = ""
    trace: str = ""

    @property
    def received_ms(self) -> int:
        """When it arrived, in milliseconds since 1970."""
        return int(self.received_at.timestamp() * 1000)

    def event(self, event_id: str) -> str:
        """The derived id of a source event."""
        return derive(self.key, "evt", self.source.identity, event_id)

    def stream(self, file_id: str) -> str:
        """The derived id of a file; "" for none."""
        return derive(self.key, "fil", self.source.identity, file_id) if file_id else ""


def whole(origin: Origin, told: SourceEvent, body: bytes) -> Accept:
    """The only event of a delivery: its bytes are the delivery's."""
    return _accept(origin, told, body, partial(comparison.comparison, body))


def item(origin: Origin, told: SourceEvent) -> Accept:
    """One entry of a batch: it has no bytes of its own, so its canonical form counts."""
    body = canonical.encode(told.item)
    return _accept(origin, told, body, partial(comparison.comparison_of, told.item))


def found(origin: Origin, told: SourceEvent) -> Accept:
    """What a walk along the source's change feed found: whatever else it tells, the id decides.

    A feed may describe the same change in other words later, so only the id is compared.
    """
    body = canonical.encode({"event_id": told.event_id, "type": told.type})
    compared: JsonValue = {"event_id": told.event_id}
    return _accept(origin, told, body, partial(comparison.comparison_of, compared))


def _accept(origin: Origin, told: SourceEvent, body: bytes, compare: partial[str]) -> Accept:
    source = origin.source
    event = origin.event(told.event_id)
    stream = origin.stream(told.file_id)
    cause = Cause("delivery", receipt_name(event), trace=origin.trace)
    command = _command(origin, told, cause, (event, stream))
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
        received_ms=origin.received_ms,
        key_id=origin.key_id,
        body=kept(source, body),
        command=command,
        control=None if command else _notice(origin, told, event),
        cause=cause,
        retries_failed=source.repeat_of_failed == "retry",
        verdict="ignored" if told.action == "ignore" else "accepted",
        wake=_wake(source, told),
    )


def _wake(source: Source, told: SourceEvent) -> Wake | None:
    """The walk that a notice asks for, where the source has a feed to walk."""
    is_missed = told.action == "lifecycle" and told.type in _MISSED
    if source.changes is None or not (is_missed or told.action == "changed"):
        return None
    return Wake(source.identity, is_missed=is_missed)


def only_known(origin: Origin, event_id: str, body: bytes) -> Accept:
    """A delivery that breaks the contract, of an event that is known: for its receipt alone."""
    told = SourceEvent(event_id=event_id, type="", action="ignore")
    return _accept(origin, told, body, partial(comparison.comparison, body))


def item_known(origin: Origin, event_id: str, value: JsonValue) -> Accept:
    """The same for an entry of a batch."""
    told = SourceEvent(event_id=event_id, type="", action="ignore", item=value)
    return item(origin, told)


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
    origin: Origin, told: SourceEvent, cause: Cause, ids: tuple[str, str]
) -> AnyFileCommand | None:
    event, stream = ids
    if not told.file_id or told.action in {"lifecycle", "changed"}:
        return None
    shared: dict[str, Any] = {
        "stream": stream,
        "cause": cause,
        "source": origin.source.name,
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


def _notice(origin: Origin, told: SourceEvent, event: str) -> SubscriptionNoticed:
    return SubscriptionNoticed(
        at_ms=origin.received_ms,
        source=origin.source.name,
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

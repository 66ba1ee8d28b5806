"""What acceptance makes of a request, in words; nothing is stored and nobody is asked."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from datetime import datetime
from typing import Any, Literal

from domain import profiles, strict_json
from domain.canonical import pointer
from domain.profiles import (
    ContractBreach,
    FieldMap,
    Handshake,
    Mapped,
    Refused,
    Rejected,
    Source,
    SourceEvent,
    Verified,
)
from domain.schemes import Primitives, Request
from domain.strict_json import InvalidJson

Verdict = Literal["valid", "invalid", "handshake", "control"]
PLACEHOLDER_HOST = "source.invalid"
_STAND_IN = f"https://{PLACEHOLDER_HOST}/no-address/"
_IDLE = frozenset({"lifecycle"})


@dataclass(frozen=True, slots=True)
class Told:
    """One event as it was mapped."""

    event_id: str
    delivery_id: str
    type: str
    action: str
    file_id: str
    version: str | None
    order: str | None
    name: str
    url: str


@dataclass(frozen=True, slots=True)
class Turned:
    """An entry of a batch that breaks the contract."""

    index: int
    field: str
    reason: str


@dataclass(frozen=True, slots=True)
class Judgement:
    """The verdict, why, and what would be answered; ``events`` where it is valid."""

    verdict: Verdict
    reason: str
    status: int
    key_id: str = ""
    events: tuple[Told, ...] = ()
    rejected: tuple[Turned, ...] = ()

    def as_data(self) -> dict[str, Any]:
        """As one JSON object."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class Judge:
    """Judges by one source. ``is_bare``: only its profile is known, and nothing of its settings."""

    source: Source
    primitives: Primitives
    now: datetime
    is_bare: bool = False

    def judge(self, request: Request) -> Judgement:
        """Greeting, proof, reading: in the order in which acceptance does it."""
        source = self._for(request)
        hello = profiles.greeting(source, request)
        if hello is not None:
            return Judgement("handshake", "answered as the source demands", hello.status)
        proof = profiles.verify(source, request, self.now, self.primitives)
        if isinstance(proof, Refused):
            return Judgement("invalid", proof.reason, 401)
        reading = profiles.read(source, request, self.now)
        return replace(self._read(reading, request, proof), key_id=proof.key_id)

    def _read(self, reading: profiles.Reading, request: Request, proof: Verified) -> Judgement:
        proven = _proven(proof)
        match reading:
            case Handshake(status=status):
                return Judgement("handshake", f"{proven}; answered as the source demands", status)
            case InvalidJson(reason=why):
                return Judgement("valid", f"{proven}; but the body is refused: {why}", 400)
            case ContractBreach() as breach:
                return self._breached(breach, request, proven)
            case Mapped() as mapped:
                return _mapped(mapped, proven, self.source)

    def _breached(self, breach: ContractBreach, request: Request, proven: str) -> Judgement:
        why = f"{proven}; but {breach.field} {breach.reason}"
        if not self.is_bare:
            return Judgement("valid", why, 422)
        reading = profiles.read(_with_any_url(self._for(request)), request, self.now)
        if not isinstance(reading, Mapped):
            return Judgement("valid", why, 422)
        found = _mapped(reading, proven, self.source)
        return replace(found, reason=f"{why}: set map.url of the source", status=422)

    def _for(self, request: Request) -> Source:
        """The source; of a bare profile the sender that the request names is believed."""
        if not self.is_bare or self.source.sender:
            return self.source
        body = strict_json.parse(request.body)
        topic = None if isinstance(body, InvalidJson) else pointer(body, "/TopicArn")
        if not isinstance(topic, str):
            return self.source
        return replace(self.source, settings=replace(self.source.settings, allow=(topic,)))


def _proven(proof: Verified) -> str:
    at = f", signed at {proof.signed_at:%Y-%m-%d %H:%M:%S} UTC" if proof.signed_at else ""
    return f"proven by key {proof.key_id}{at}"


def _with_any_url(source: Source) -> Source:
    told = source.mapping.url
    places = tuple(place for place in ((told,) if isinstance(told, str) else told) if place)
    mapping = FieldMap(url=(*places, f"{_STAND_IN}{{file_id}}"))
    prepared = profiles.prepare(replace(source.settings, mapping=mapping))
    return prepared if isinstance(prepared, Source) else source


def _mapped(mapped: Mapped, proven: str, source: Source) -> Judgement:
    events = tuple(e for e in mapped.events if isinstance(e, SourceEvent))
    turned = tuple(_turned(e) for e in mapped.events if isinstance(e, Rejected))
    told = tuple(_told(event) for event in events)
    if not mapped.events or (events and {event.action for event in events} <= _IDLE):
        status = source.profile.answer.status or 202
        return Judgement("control", f"{proven}; starts no file work", status, events=told)
    if not events:
        why = f"{proven}; but no entry keeps the contract"
        return Judgement("valid", why, 422, rejected=turned)
    status = source.profile.answer.status or 202
    return Judgement("valid", proven, status, events=told, rejected=turned)


def _turned(entry: Rejected) -> Turned:
    return Turned(entry.index, entry.breach.field, entry.breach.reason)


def _told(event: SourceEvent) -> Told:
    return Told(
        event_id=event.event_id,
        delivery_id=event.delivery_id,
        type=event.type,
        action=event.action,
        file_id=event.file_id,
        version=event.version,
        order=event.order,
        name=event.name,
        url="" if event.url.startswith(_STAND_IN) else event.url,
    )

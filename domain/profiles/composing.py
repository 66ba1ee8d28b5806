"""The other way round: a delivery made and signed as the source would make it, to try with."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import datetime
from typing import cast

from domain import canonical, signatures
from domain.profiles import places
from domain.profiles.reading import read
from domain.profiles.values import Action, Mapped, Source, SourceEvent, Spot
from domain.schemes import Request
from domain.signatures import Refused, SignWith
from domain.strict_json import JsonObject, JsonValue

_AS_THEY_ARE = ("file_id", "media_type", "name", "previous_name", "project", "sequence", "sha256")


def compose(
    source: Source, event: SourceEvent, url: str, now: datetime, ed25519: SignWith | None = None
) -> Request | Refused:
    """A signed delivery that this source reads as ``event``, sent to ``url``.

    ``event.type`` may be empty: then it is the source's first word for the action. What cannot be
    made from the map (a proof inside the body, entries taken apart by a function) is refused.
    """
    profile = source.profile
    if profile.verifier or profile.items or profile.body or not source.schemes:
        return Refused(f"deliveries of {profile.name} cannot be made from its map")
    event = replace(event, type=event.type or word_for(source, event.action))
    if not event.type:
        return Refused(f"{profile.name} has no single word for {event.action}")
    unsigned = _request(source, event, url)
    signed = signatures.sign(source.schemes[0], unsigned, source.keys, now, ed25519)
    if isinstance(signed, Refused):
        return signed
    query = "&".join(f"{name}={value}" for name, value in signed.query)
    request = replace(
        unsigned,
        url=f"{url}?{query}" if query else url,
        query=query,
        headers=(*unsigned.headers, *signed.headers),
    )
    return request if _is_read_back(source, request, event, now) else _UNREADABLE


_UNREADABLE = Refused("the source's map does not read what it was made to write")


def word_for(source: Source, action: Action) -> str:
    """The source's first word for an action; "" if it has none."""
    words = (word for word, meaning in source.types.items() if meaning == action)
    return next((word for word in words if "*" not in word), "")


def _is_read_back(source: Source, request: Request, event: SourceEvent, now: datetime) -> bool:
    found = read(source, request, now)
    if not isinstance(found, Mapped) or len(found.events) != 1:
        return False
    read_back = found.events[0]
    if not isinstance(read_back, SourceEvent):
        return False
    wanted, told = ((e.action, e.type, e.file_id) for e in (event, read_back))
    return wanted == told


def _request(source: Source, event: SourceEvent, url: str) -> Request:
    headers: dict[str, str] = {"content-type": "application/json"}
    item: JsonObject = {}
    for name, value in _values(event).items():
        spot = next(iter(source.spots[name]), None)
        if spot is None or value is None or value == "":
            continue
        if spot.kind == "header":
            headers[spot.text] = str(value).encode().decode("latin-1")
        elif spot.kind == "pointer":
            _put(item, spot.steps, value)
    for hole in _holes(source.spots["event_id"]):
        _put(item, canonical.tokens(hole), event.event_id)
    body = json.dumps(_wrapped(source, item), ensure_ascii=False, separators=(",", ":")).encode()
    path = "/" + url.partition("://")[2].partition("/")[2]
    return Request("POST", url, path, "", tuple(headers.items()), body)


def _values(event: SourceEvent) -> dict[str, JsonValue]:
    at = event.occurred_at
    # Where two fields are read from one place, the time goes before the version.
    told: dict[str, JsonValue] = {
        "occurred_at": at.isoformat().replace("+00:00", "Z") if at else None
    }
    told |= {name: getattr(event, name) for name in _AS_THEY_ARE}
    return told | {
        "event_id": event.event_id,
        "delivery_id": event.delivery_id or event.event_id,
        "type": event.type,
        "version": event.version,
        "url": event.url,
        "size": event.size_bytes,
    }


def _holes(spots: tuple[Spot, ...]) -> list[str]:
    # What else an event id is made of, and no field has filled.
    texts = [spot.text for spot in spots[:1] if spot.kind == "template"]
    return [hole for text in texts for hole in places.holes(text) if hole.startswith("/")]


def _put(item: JsonObject, steps: tuple[str, ...], value: JsonValue) -> None:
    *parents, last = steps
    inner = item
    for step in parents:
        inner = cast("JsonObject", inner.setdefault(step, {}))
    inner.setdefault(last, value)


def _wrapped(source: Source, item: JsonObject) -> JsonValue:
    if source.batch is None:
        return item
    whole: JsonValue = [item]
    for step in reversed(canonical.tokens(source.batch)):
        whole = {step: whole}
    return whole

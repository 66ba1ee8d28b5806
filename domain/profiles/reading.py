"""From a verified delivery to what it tells: parse, take apart, map, judge."""

from __future__ import annotations

from dataclasses import fields
from datetime import datetime

from domain import strict_json
from domain.canonical import pointer, tokens
from domain.profiles import judging
from domain.profiles.places import Places, needs_body
from domain.profiles.values import (
    ContractBreach,
    FieldMap,
    Handshake,
    Item,
    Mapped,
    Reading,
    Rejected,
    Source,
    SourceEvent,
    Where,
)
from domain.schemes import Request
from domain.strict_json import InvalidJson, JsonValue

MAX_BATCH = 1000


def read(source: Source, request: Request, now: datetime) -> Reading:
    """What a delivery tells; call it only after ``verify`` said yes.

    ``now`` is part of the event id of notices that say "look again" and nothing else: two equal
    ones are two events.
    """
    value = _body(source, request)
    if isinstance(value, InvalidJson):
        return value
    items = _items(source, request, value)
    if isinstance(items, (ContractBreach, Handshake)):
        return items
    is_single = not source.profile.is_batch and source.profile.items is None
    if is_single and source.batch is None and len(items) == 1:
        return _single(_entry(source, request, items[0], 0, now))
    events = tuple(_entry(source, request, item, n, now) for n, item in enumerate(items))
    is_batch = source.profile.is_batch or source.batch is not None or isinstance(value, list)
    if len(events) == 1 and not is_batch:
        return _single(events[0])
    return Mapped(events, is_batch=len(events) > 0)


def _body(source: Source, request: Request) -> JsonValue | InvalidJson:
    if source.profile.body is not None:
        return source.profile.body(request)
    if not request.body and _speaks_in_headers(source):
        return {}
    takes_arrays = source.batch == "" or source.profile.items is not None
    if takes_arrays:
        return strict_json.parse_value(request.body)
    return strict_json.parse(request.body)


def _speaks_in_headers(source: Source) -> bool:
    found = (source.mapping.event_id, source.mapping.type, source.mapping.file_id)
    return not any(needs_body(where) for where in found)


def _items(
    source: Source, request: Request, value: JsonValue
) -> list[Item] | ContractBreach | Handshake:
    if source.profile.items is not None:
        return source.profile.items(source, request, value)
    return split(value, source.batch)


def split(value: JsonValue, batch: str | None) -> list[Item] | ContractBreach:
    """The entries of a batch; without one, the whole body is the only entry."""
    if batch is None:
        return [Item(value)]
    entries = pointer(value, batch)
    if not isinstance(entries, list) or not entries:
        return ContractBreach(batch or "/", "must be an array with entries")
    if len(entries) > MAX_BATCH:
        return ContractBreach(batch or "/", f"has more than {MAX_BATCH} entries")
    return [Item(entry) for entry in entries]


def told_ids(source: Source, request: Request, now: datetime) -> tuple[str, ...]:
    """The event id of each entry, "" where there is none: also where the contract is broken."""
    value = _body(source, request)
    items = value if isinstance(value, InvalidJson) else _items(source, request, value)
    if not isinstance(items, list):
        return ()
    return tuple(_told_id(source, request, item, now) for item in items)


def _told_id(source: Source, request: Request, item: Item, now: datetime) -> str:
    places = Places(source, request, item.value)
    places.known = {"now": now.isoformat()}
    desk = judging.Judge(places, source.profile)
    found = desk.identity("event_id", needed=True)
    return found if desk.breach is None else ""


def _single(event: SourceEvent | Rejected) -> Reading:
    return event.breach if isinstance(event, Rejected) else Mapped((event,))


def _entry(
    source: Source, request: Request, item: Item, index: int, now: datetime
) -> SourceEvent | Rejected:
    if item.breach is not None:
        return Rejected(index, item.breach, item.value)
    places = Places(source, request, item.value)
    places.known = {"now": now.isoformat()}
    refuses = source.settings.unknown_fields == "refuse"
    if refuses and (stray := stray_field(source.mapping, item.value)):
        return Rejected(index, ContractBreach(stray, "is not known"), item.value)
    event = judging.judge(source, places, index, item.action)
    return Rejected(index, event, item.value) if isinstance(event, ContractBreach) else event


def stray_field(mapping: FieldMap, value: JsonValue) -> str:
    """The first field of the body that the map does not know; "" if it knows all."""
    known = {tokens(text) for f in fields(mapping) for text in _pointers(getattr(mapping, f.name))}
    parents = {path[:size] for path in known for size in range(len(path))}
    return _stray(value, (), known, parents)


def _stray(
    value: JsonValue,
    path: tuple[str, ...],
    known: set[tuple[str, ...]],
    parents: set[tuple[str, ...]],
) -> str:
    if path in known or not isinstance(value, dict):
        return "" if path in known else _shown(path)
    for key, member in value.items():
        below = (*path, key)
        if below not in known and below not in parents:
            return _shown(below)
        if below not in known and (found := _stray(member, below, known, parents)):
            return found
    return ""


def _shown(path: tuple[str, ...]) -> str:
    return "/" + "/".join(path)


def _pointers(where: Where) -> list[str]:
    texts = (where,) if isinstance(where, str) else where
    return [text for text in texts if text.startswith("/") and "{" not in text]

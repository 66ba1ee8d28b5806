"""Who is to be told, under which id, and in exactly which bytes."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from domain.commands import Body, Context, Destination
from domain.events import MessageOrder, MessageType
from domain.ids import derive
from domain.order import view
from domain.states import ORIGINAL, File, Message, Version, meaning_of

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_UNSENT = frozenset({"skipped", "discarded"})
_GONE = frozenset({"file.deleted", "file.erased"})


@dataclass(frozen=True, slots=True)
class Notice:
    """What is to be told of a file, or of one of its versions.

    ``details`` are fields of the message's data beside those that every message has. ``only`` is
    the destination that is to hear it, "" for all that are concerned.
    """

    type: MessageType
    version: Version | None = None
    details: Mapping[str, Any] = field(default_factory=dict)
    only: str = ""


@dataclass(frozen=True, slots=True)
class Envelope:
    """Where a message goes, under which id and with which number in the file's order."""

    message_id: str
    destination: Destination
    sequence: int


@dataclass(frozen=True, slots=True)
class Telling:
    """The orders of one telling and the bytes of each."""

    sequence: int
    orders: tuple[MessageOrder, ...]
    bodies: tuple[Body, ...]


def next_sequence(file: File, now_ms: int) -> int:
    """The sequence of the file's next message: rising, also across a restore from a backup."""
    return max(file.sequence + 1, now_ms)


def tell(stream: str, file: File, notice: Notice, context: Context) -> Telling:
    """Order a message to each destination that is to hear this and has not heard it yet."""
    sequence = next_sequence(file, context.now_ms)
    orders: list[MessageOrder] = []
    bodies: list[Body] = []
    for destination in listeners(file, notice, context):
        message_id = _message_id(stream, file, notice, destination.name, context)
        if not message_id:
            continue
        envelope = Envelope(message_id, destination, sequence)
        data = compose(file, notice, envelope, context)
        salt = hashlib.sha256(context.salt + message_id.encode()).digest()[:16]
        bodies.append(Body(message=message_id, salt=salt, data=data))
        orders.append(MessageOrder(message_id, destination.name, commitment(salt, data)))
    return Telling(sequence, tuple(orders), tuple(bodies))


def commitment(salt: bytes, data: bytes) -> str:
    """The salted digest by which an event holds on to a message's bytes, in hex."""
    return hashlib.sha256(salt + data).hexdigest()


def holds_true(file: File, destination: str) -> str:
    """What the destination holds true of the file, or soon will; "" for nothing that is sure.

    That is the last meaning it was told, or is being told. A dead message counts: it may yet be
    sent again, and then has to be outdone by a later one. One that was called back unsent does not,
    and one that was called back after an unclear attempt leaves us unsure.
    """
    last = _last(file, destination, is_standing=True)
    return last.meaning if last and last.phase not in _UNSENT else ""


def name_told(file: File, destination: str) -> str:
    """The name that the destination has for the file, "" where that is not settled.

    It is not while a message is open or dead: one that is sent later must not be outdone by a
    renaming, or a receiver that goes by sequences would drop what the message says.
    """
    meant = _last(file, destination, is_standing=True)
    told = [
        m
        for m in file.messages.values()
        if meant
        and m.destination == destination
        and m.sequence >= meant.sequence
        and (m.reached or m.phase not in _UNSENT)
    ]
    last = max(told, key=_by_sequence, default=None)
    if last is None or last.type in _GONE:
        return ""
    if any(m.is_open or m.phase == "dead" for m in told):
        return ""
    return view(file.facts[: last.facts]).name


def has_heard_of(file: File, destination: str) -> bool:
    """Whether the destination knows of the file's content, or is about to."""
    return _last_heard(file, destination) not in {"", *_GONE}


def may_have(file: File, destination: str) -> bool:
    """Whether the destination may still have something of the file, also of a deleted one."""
    return _last_heard(file, destination) not in {"", "file.erased"}


def _last_heard(file: File, destination: str) -> str:
    heard = [
        m
        for m in file.messages.values()
        if m.destination == destination
        and m.type != "file.renamed"
        and (m.reached or m.phase == "delivered" or m.is_open)
    ]
    return max(heard, key=_by_sequence).type if heard else ""


def listeners(file: File, notice: Notice, context: Context) -> list[Destination]:
    """Who is to hear this and does not hold it true already.

    Of an erasure everyone is told who may have the file, whatever else they listen to.
    """
    known = context.destinations
    if notice.type == "file.erased":
        had = dict.fromkeys(m.destination for m in file.messages.values())
        return [known[n] for n in had if n in known and may_have(file, n)]
    if notice.only:
        names: tuple[str, ...] = (notice.only,)
    elif notice.version is None:
        heard = dict.fromkeys(m.destination for m in file.messages.values())
        names = tuple(n for n in heard if has_heard_of(file, n))
    else:
        recipe = context.recipes.get(notice.version.recipe)
        names = recipe.notify if recipe else ()
        if notice.version.version == file.view.current:
            meaning = meaning_of(notice.type, notice.version)
            names = tuple(n for n in names if holds_true(file, n) != meaning)
    return [known[n] for n in names if n in known and notice.type in known[n].types]


def _last(file: File, destination: str, *, is_standing: bool) -> Message | None:
    told = (
        m
        for m in file.messages.values()
        if m.destination == destination
        and m.meaning
        and (not is_standing or m.reached or m.phase not in _UNSENT)
    )
    return max(told, key=_by_sequence, default=None)


def _message_id(stream: str, file: File, notice: Notice, destination: str, context: Context) -> str:
    """The id of this message, or "" where it was said and nothing else was said since."""
    version = notice.version
    seen = file.view
    about_current = version is None or version.version == seen.current
    parts = (
        destination,
        stream,
        version.version if version else "",
        notice.type,
        seen.reopened if about_current else "",
        version.reprocessed if version else "",
        *((seen.name, seen.named) if notice.type == "file.renamed" else ()),
    )
    message_id = derive(context.key, "msg", *parts)
    known = file.messages.get(message_id)
    last = _last(file, destination, is_standing=False)
    if known is None:
        return message_id
    if not known.meaning or last is None or (known is last and known.phase != "skipped"):
        return ""
    # The same words a second time, after others: a message of its own, named by what it outdoes.
    return derive(context.key, "msg", *parts, last.id)


def compose(file: File, notice: Notice, envelope: Envelope, context: Context) -> bytes:
    """The exact bytes of one message, in the destination's format."""
    destination = envelope.destination
    data = _data(file, notice, envelope.sequence, context)
    timestamp = instant(context.now_ms * 1000)
    match destination.format:
        case "standard":
            return encode({"type": notice.type, "timestamp": timestamp, "data": data})
        case "cloudevents":
            return encode(
                {
                    "specversion": "1.0",
                    "id": envelope.message_id,
                    "source": f"{context.base_url}/sources/{file.source}",
                    "type": notice.type,
                    "subject": file.file_id,
                    "time": timestamp,
                    "datacontenttype": "application/json",
                    "data": data,
                }
            )
        case "mapped":
            whole = {"type": notice.type, "timestamp": timestamp, "data": data}
            return encode({name: _pick(whole, at) for name, at in destination.body})


def _data(file: File, notice: Notice, sequence: int, context: Context) -> dict[str, Any]:
    data: dict[str, Any] = {
        "source": file.source,
        "file_id": file.file_id,
        "generation": file.generation,
        "sequence": sequence,
        "name": file.view.name,
    }
    if file.project:
        data["project"] = file.project
    if references := _references(file):
        data["references"] = references
    if notice.version is not None:
        data |= _version_data(file, notice.version, context)
    if notice.type == "file.version.completed" and notice.version is not None:
        data |= _results(file, notice.version, context)
    return data | dict(notice.details)


def _version_data(file: File, version: Version, context: Context) -> dict[str, Any]:
    recipe = context.recipes.get(version.recipe)
    data: dict[str, Any] = {
        "version": version.version,
        "current": version.version == file.view.current,
        "event_id": version.event_id,
        "recipe": recipe.name if recipe else "",
        "run": version.run,
    }
    if version.occurred_us is not None:
        data["occurred_at"] = instant(version.occurred_us)
    return data


def _results(file: File, version: Version, context: Context) -> dict[str, Any]:
    artifacts = [
        {
            "name": artifact.name,
            "sha256": artifact.sha256,
            "size": artifact.size_bytes,
            "media_type": artifact.media_type,
            "url": f"{context.base_url}/api/v1/artifacts/{artifact.id}",
        }
        | ({"note": artifact.note} if artifact.note else {})
        for key in _in_order(version.outputs)
        for artifact in file.made.get(key, ())
    ]
    missing = [{"name": name, "error": why} for name, why in version.missing.items()]
    return {"artifacts": artifacts} | ({"missing": missing} if missing else {})


def _in_order(outputs: Mapping[str, str]) -> list[str]:
    """The original first, then by the steps' names: the bytes do not depend on who was faster."""
    return [outputs[name] for name in sorted(outputs, key=lambda n: (n != ORIGINAL, n))]


def _references(file: File) -> dict[str, str]:
    """The receivers' own ids for this file, the latest of each destination."""
    told = sorted(file.messages.values(), key=_by_sequence)
    return {m.destination: m.reference for m in told if m.reference}


def _by_sequence(message: Message) -> int:
    return message.sequence


def _pick(whole: Mapping[str, Any], pointer: str) -> Any:
    value: Any = whole
    for part in pointer.split("/")[1:]:
        name = part.replace("~1", "/").replace("~0", "~")
        if isinstance(value, list):
            value = value[int(name)] if name.isdigit() and int(name) < len(value) else None
        else:
            value = value.get(name) if isinstance(value, dict) else None
    return value


def encode(value: Any) -> bytes:
    """A message's JSON: UTF-8 whatever the names hold, and stable."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return text.encode("utf-8", "replace")


def instant(at_us: int) -> str:
    """A time in RFC 3339, UTC, with as many digits as it needs."""
    at = EPOCH + timedelta(microseconds=at_us)
    text = at.replace(tzinfo=None).isoformat(timespec="microseconds")
    return text.rstrip("0").rstrip(".") + "Z"

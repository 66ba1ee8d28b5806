"""An event to its stored bytes and back; a file's state to its row's bytes and back.

The stored bytes of an event are canonical JSON and are what the chain hashes: the public fields as
they are, each private field as a salted commitment. The private values go into a row of their own.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

import msgspec

from domain import canonical, chain
from domain.commands import Cause, CauseKind
from domain.events import Event, private_fields
from domain.installation import EVENT_TYPES
from domain.states import File

_NO_SALT = b""


@dataclass(frozen=True, slots=True)
class Stored:
    """An event as it is stored: the hashed body, and the part that can be erased."""

    stream: str
    revision: int
    type: str
    body: bytes
    salt: bytes
    parts: bytes


@dataclass(frozen=True, slots=True)
class Recorded:
    """An event as it is read: with its place in its stream and its cause."""

    stream: str
    revision: int
    event: Event
    cause: Cause


class UnknownEventError(Exception):
    """The log holds an event of a kind or schema that this program does not know."""


def encode_event(event: Event, *, stream: str, revision: int, cause: Cause, salt: bytes) -> Stored:
    """The stored form of an event; raises ``TypeError`` for values that have no canonical form."""
    kind = type(event)
    data: dict[str, Any] = msgspec.to_builtins(event)
    private = {name: data.pop(name) for name in private_fields(kind)}
    private = {name: value for name, value in private.items() if value}
    if cause.reason:
        private["reason_of_cause"] = cause.reason
    if cause.operator:
        private["operator"] = cause.operator
    body: dict[str, Any] = {
        "cause": {"kind": cause.kind, "id": cause.id},
        "data": data,
        "private": {name: chain.commitment(salt, name, v) for name, v in private.items()},
        "revision": revision,
        "schema": kind.schema,
        "stream": stream,
        "trace": cause.trace,
        "type": kind.__name__,
    }
    return Stored(
        stream=stream,
        revision=revision,
        type=kind.__name__,
        body=canonical.encode_event(body),
        salt=salt if private else _NO_SALT,
        parts=canonical.encode(private) if private else b"",
    )


def decode_event(body: bytes, parts: bytes | None) -> Recorded:
    """The event of these stored bytes; private values that were erased read as "".

    Raises ``UnknownEventError`` for a kind or schema that no upcaster leads up from.
    """
    record = _ENVELOPE.decode(body)
    form = _form(record.type)
    event = _event(record, form)
    private = _PARTS.decode(parts) if parts else _NOTHING
    for name in form.private if private else ():
        if name in private:
            # Nobody has seen the event yet; making it anew would cost as much as reading it.
            object.__setattr__(event, name, private[name])
    cause = Cause(
        kind=record.cause.kind,
        id=record.cause.id,
        operator=private.get("operator", ""),
        reason=private.get("reason_of_cause", ""),
        trace=record.trace,
    )
    return Recorded(record.stream, record.revision, event, cause)


class _CauseRecord(msgspec.Struct):
    kind: CauseKind
    id: str


class _Record(msgspec.Struct):
    """The stored body; what it says of the event is read once its type is known."""

    cause: _CauseRecord
    data: msgspec.Raw
    revision: int
    schema: int
    stream: str
    trace: str
    type: str


@dataclass(frozen=True, slots=True)
class _Form:
    """How the newest schema of a type is read."""

    decoder: msgspec.json.Decoder[Any]
    schema: int
    private: tuple[str, ...]


_ENVELOPE = msgspec.json.Decoder(_Record)
_PARTS = msgspec.json.Decoder(dict[str, str])
_NOTHING: Mapping[str, str] = {}


@cache
def _form(name: str) -> _Form:
    kind = EVENT_TYPES.get(name)
    if kind is None:
        raise UnknownEventError(name)
    return _Form(msgspec.json.Decoder(kind), kind.schema, private_fields(kind))


# One step from an older schema of a kind to the next: (type, schema) -> data to data.
UPCASTERS: dict[tuple[str, int], Any] = {}


def _event(record: _Record, form: _Form) -> Event:
    event: Event
    if record.schema == form.schema:
        event = form.decoder.decode(record.data)
        return event
    if record.schema > form.schema:
        raise UnknownEventError(f"{record.type} of schema {record.schema}")
    data = msgspec.json.decode(record.data)
    for schema in range(record.schema, form.schema):
        data = UPCASTERS[record.type, schema](data)
    event = msgspec.convert(data, EVENT_TYPES[record.type])
    return event


def encode_file(file: File) -> bytes:
    """The state of a file as its row holds it.

    The order in which things came to be in it is kept, as decisions may look at it: so the state
    that is read back is the one that a fold of the events makes.
    """
    return _encoder().encode(file)


def decode_file(body: bytes) -> File:
    """The inverse of ``encode_file``."""
    return _decoder().decode(body)


@cache
def _encoder() -> msgspec.json.Encoder:
    return msgspec.json.Encoder()


@cache
def _decoder() -> msgspec.json.Decoder[File]:
    return msgspec.json.Decoder(File)

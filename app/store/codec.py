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
from domain.commands import Cause
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
    record = msgspec.json.decode(body)
    private: Mapping[str, Any] = msgspec.json.decode(parts) if parts else {}
    kind = EVENT_TYPES.get(record["type"])
    if kind is None:
        raise UnknownEventError(record["type"])
    data = _newest(record)
    data.update((name, private[name]) for name in private_fields(kind) if name in private)
    cause = Cause(
        kind=record["cause"]["kind"],
        id=record["cause"]["id"],
        operator=private.get("operator", ""),
        reason=private.get("reason_of_cause", ""),
        trace=record["trace"],
    )
    event = msgspec.convert(data, kind)
    return Recorded(record["stream"], record["revision"], event, cause)


# One step from an older schema of a kind to the next: (type, schema) -> data to data.
UPCASTERS: dict[tuple[str, int], Any] = {}


def _newest(record: Mapping[str, Any]) -> dict[str, Any]:
    data: dict[str, Any] = record["data"]
    schema = record["schema"]
    newest = EVENT_TYPES[record["type"]].schema
    while schema < newest:
        data = UPCASTERS[record["type"], schema](data)
        schema += 1
    if schema > newest:
        raise UnknownEventError(f"{record['type']} of schema {schema}")
    return data


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

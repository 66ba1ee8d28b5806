"""The stored events of one stream to the state that they lead to."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import msgspec

from app.store.codec import UnknownEventError, decode_event
from app.store.rebuilding import Raw
from domain.errors import IllegalTransitionError
from domain.events import Event
from domain.evolution import EVOLVERS, evolve
from domain.states import File

# What a body that this program did not write so, or that cannot follow, leads to.
_BROKEN = (msgspec.MsgspecError, IllegalTransitionError, LookupError, TypeError, ValueError)


@dataclass(frozen=True, slots=True)
class SetAside:
    """An event that cannot be read or cannot follow; its stream is left as it is."""

    stream: str
    revision: int
    type: str
    reason: str


@dataclass(frozen=True, slots=True)
class Folded:
    """A file, ``None`` where the stream is none's, and the types that were not known."""

    file: File | None
    unknown: tuple[str, ...] = ()


def fold_stream(events: Sequence[Raw]) -> Folded | SetAside:
    """Fold a stream from its first event; unknown events are passed over, but counted."""
    file = File()
    unknown: list[str] = []
    is_file = False
    for count, raw in enumerate(events, start=1):
        if raw.revision != count:
            return _aside(raw, f"revision {count} is missing")
        try:
            event = _read(raw)
            if event is None:
                unknown.append(raw.type)
                file = _passed_over(file, raw)
            elif type(event) in EVOLVERS:
                is_file = True
                file = evolve(file, event)  # type: ignore[arg-type]
        except _BROKEN as error:
            return _aside(raw, _words(error))
    return Folded(file if is_file else None, tuple(unknown))


def _read(raw: Raw) -> Event | None:
    """The event; ``None`` for one that this program does not know."""
    try:
        return decode_event(raw.body, raw.parts).event
    except UnknownEventError:
        return None


def _passed_over(file: File, raw: Raw) -> File:
    """A file behind an event that only a newer program knows: counted, and dated if it has a date.

    Raises ``ValidationError`` if the body is not even the envelope that every event has.
    """
    at_ms = msgspec.json.decode(raw.body, type=_Envelope).data.at_ms
    return replace(
        file,
        revision=file.revision + 1,
        opened_ms=file.opened_ms or at_ms,
        changed_ms=at_ms or file.changed_ms,
    )


class _Data(msgspec.Struct):
    at_ms: int = 0


class _Envelope(msgspec.Struct):
    data: _Data


def _aside(raw: Raw, reason: str) -> SetAside:
    return SetAside(raw.stream, raw.revision, raw.type, reason)


def _words(error: Exception) -> str:
    """Why, without a value: what these say names fields and states, others may quote content."""
    if isinstance(error, (msgspec.MsgspecError, IllegalTransitionError)):
        return str(error)
    return type(error).__name__

"""A file as it was."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import takewhile

from app.replay.folding import SetAside, fold_stream
from app.store.codec import UnknownEventError, decode_event
from app.store.engine import Store
from app.store.errors import BrokenLogError
from app.store.rebuilding import Raw, read_events, read_until
from domain.states import File


def state_at(store: Store, stream: str, position: int) -> File:
    """The file as of a position of the log; of revision 0 before its first event.

    What was erased since is not shown. Raises ``BrokenLogError`` if the stream cannot be read.
    """
    with store.snapshot() as connection:
        events = read_until(connection, stream, position)
    return _folded(events)


def state_at_time(store: Store, stream: str, at_ms: int) -> File:
    """The same as of a time: with what had been recorded by then."""
    with store.snapshot() as connection:
        events = read_events(connection, stream)
    return _folded(list(takewhile(lambda raw: _at_ms(raw) <= at_ms, events)))


def _at_ms(raw: Raw) -> int:
    try:
        return decode_event(raw.body, None).event.at_ms
    except UnknownEventError:
        return 0


def _folded(events: Sequence[Raw]) -> File:
    folded = fold_stream(events)
    if isinstance(folded, SetAside):
        raise BrokenLogError(f"{folded.type} at revision {folded.revision}: {folded.reason}")
    return folded.file or File()

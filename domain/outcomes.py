"""How an attempt may end: the only four answers that a piece of work can give."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Generic, TypeVar

ResultT = TypeVar("ResultT")


@dataclass(frozen=True, slots=True)
class Done(Generic[ResultT]):
    """The work is done; ``result`` says what came of it."""

    result: ResultT


@dataclass(frozen=True, slots=True)
class Again:
    """Try again later.

    ``counted`` is false where the try was no fault of the work: a locked source, a full disk, a
    pause, a hand-back at shutdown. ``wait_s`` is a wait that the other side asked for, in seconds
    (its Retry-After); ``everyone`` says that the wait holds for the whole source or destination.
    ``trouble`` says that the other side, not this piece of work, is the cause: it counts for the
    breaker.
    """

    reason: str
    counted: bool = True
    wait_s: float | None = None
    everyone: bool = False
    trouble: bool = False


@dataclass(frozen=True, slots=True)
class Dead:
    """Never again by itself: a dead letter. ``pauses`` says that the destination asked to stop."""

    reason: str
    pauses: bool = False


@dataclass(frozen=True, slots=True)
class Unclear:
    """Sent, and no answer came: it may or may not have arrived."""

    reason: str

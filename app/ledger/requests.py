"""What the Ledger takes, and what it answers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from app.store.deliveries import Delivery
from app.store.receipts import Receipt
from app.store.walks import Wake
from domain.commands import AnyFileCommand, Cause, FinishJob, FinishMessage, Refusal
from domain.events import Event
from domain.installation import CONTROL_STREAM, ControlEvent
from domain.states import File

CONTROL = CONTROL_STREAM


@dataclass(frozen=True, slots=True, kw_only=True)
class Accept:
    """A first delivery, or so it seems: answered as accepted, as a repeat or as a conflict.

    ``compare`` gives the comparison digest of the body under a stored rule. ``command`` is what the
    delivery says about a file, ``None`` where it says nothing about one; ``verdict`` is then its.
    ``wake`` is the walk that it asks for, once more with each repeat.
    """

    source: str
    event: str
    event_id: str
    delivery_id: str
    type: str
    stream: str
    digest: str
    rule: str
    compare: Callable[[str], str]
    received_ms: int
    key_id: str
    body: bytes | None
    command: AnyFileCommand | None = None
    control: ControlEvent | None = None
    cause: Cause = field(default_factory=lambda: Cause("delivery"))
    retries_failed: bool = False
    verdict: str = "accepted"
    wake: Wake | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Finish:
    """The end of a claim; ``exchange`` is the record of the attempt, encoded."""

    command: FinishJob | FinishMessage
    incarnation: int
    exchange: bytes | None = None
    outcome: str = ""
    error: str = ""


@dataclass(frozen=True, slots=True)
class Order:
    """An operator's command about a file."""

    command: AnyFileCommand


@dataclass(frozen=True, slots=True)
class Control:
    """An event of the installation; refused where it changes nothing."""

    event: ControlEvent
    cause: Cause
    stream: str = CONTROL


@dataclass(frozen=True, slots=True)
class Note:
    """A delivery for the history: refused, rejected, failed."""

    delivery: Delivery
    body: bytes | None = None


Request = Accept | Finish | Order | Control | Note


@dataclass(frozen=True, slots=True)
class Accepted:
    """Stored for the first time; ``verdict`` is accepted, ignored or stale."""

    receipt: Receipt


@dataclass(frozen=True, slots=True)
class Repeated:
    """Known: the receipt of the first delivery, as it was."""

    receipt: Receipt


@dataclass(frozen=True, slots=True)
class Conflicted:
    """Known under other bytes: the first stays, these are in quarantine."""

    receipt: Receipt
    digest: str


@dataclass(frozen=True, slots=True)
class Recorded:
    """These events were recorded, none if there was nothing to do.

    ``file`` is the file of this stream as the transaction leaves it.
    """

    events: tuple[Event, ...] = ()
    stream: str = ""
    file: File | None = field(default=None, repr=False)


Answer = Accepted | Repeated | Conflicted | Recorded | Refusal

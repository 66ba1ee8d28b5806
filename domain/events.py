"""What happened: one frozen dataclass a fact, in the past tense.

An event's public fields are hashed and kept for ever. Fields marked with ``private()`` are kept
beside the event, can be erased, and enter the hash only as a salted commitment; after erasure
they read as "". Times are integers: ``_ms`` milliseconds, ``_us`` microseconds since 1970 (UTC).
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import Any, ClassVar, Literal

from domain.work import JobKind

Verdict = Literal["new", "joined", "stale", "ignored"]
MessageType = Literal[
    "file.version.completed",
    "file.version.failed",
    "file.deleted",
    "file.renamed",
    "file.erased",
    "alert.opened",
    "alert.closed",
    "test",
]
RunReason = Literal["restored", "reopened", "matched", "reprocessed"]
RecallReason = Literal["superseded", "deleted", "reprocessed", "erased"]


def private(default: str = "") -> Any:
    """Mark a field as part of the event's private part."""
    return field(default=default, metadata={"private": True})


@dataclass(frozen=True, slots=True)
class Artifact:
    """A recorded result: bytes in the store under their SHA-256."""

    id: str
    name: str
    sha256: str
    size_bytes: int
    media_type: str
    note: str = ""


@dataclass(frozen=True, slots=True)
class JobOrder:
    """One piece of work, as ordered."""

    id: str
    kind: JobKind
    name: str
    step: str = ""
    required: bool = True


@dataclass(frozen=True, slots=True)
class MessageOrder:
    """One notification, as ordered; its exact bytes are kept apart, here is their SHA-256.

    The digest is salted, as the bytes can be erased.
    """

    id: str
    destination: str
    commitment: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """What every event has: when it was recorded."""

    schema: ClassVar[int] = 1
    at_ms: int


# -- what sources told ---------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceFact(Event):
    """What every fact from a source has."""

    source: str
    event: str
    sequence: int | None = None
    occurred_us: int | None = None
    event_id: str = private()
    file_id: str = private()
    project: str = private()


@dataclass(frozen=True, slots=True, kw_only=True)
class VersionReported(SourceFact):
    """A source announced a content of the file; ``job`` is the download it ordered, if any."""

    version: str
    verdict: Verdict
    value: str | None = None
    size_bytes: int | None = None
    sha256: str = ""
    media_type: str = ""
    type: str = ""
    recipe: str = ""
    job: str = ""
    name: str = private()
    url: str = private()


@dataclass(frozen=True, slots=True, kw_only=True)
class FileDeleted(SourceFact):
    """The source says that it deleted the file."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FileRestored(SourceFact):
    """The source says that the file is there again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FileRenamed(SourceFact):
    """The source says that the file has another name."""

    name: str = private()


@dataclass(frozen=True, slots=True, kw_only=True)
class EventIgnored(SourceFact):
    """A source event of a kind that starts nothing."""

    type: str


# -- runs and jobs -------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class RunStarted(Event):
    """Work on a known version began; ``job`` is the download it ordered, if one is needed."""

    version: str
    run: int
    recipe: str
    reason: RunReason
    job: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkRecalled(Event):
    """A version's unfinished work was called back; ``asked`` runs and was asked to stop."""

    version: str
    reason: RecallReason
    jobs: tuple[str, ...] = ()
    messages: tuple[str, ...] = ()
    asked: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class StepsOrdered(Event):
    """The original is there: transformations were ordered, or found done.

    ``reused`` names each step that was found done, with the step's digest.
    """

    version: str
    original: str
    jobs: tuple[JobOrder, ...] = ()
    reused: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptEnded(Event):
    """What every end of a claim has: ``attempt`` counts from 1, ``epoch`` is the claim's."""

    job: str
    attempt: int
    epoch: int


@dataclass(frozen=True, slots=True, kw_only=True)
class OriginalStored(AttemptEnded):
    """A download is done."""

    version: str
    artifact: Artifact


@dataclass(frozen=True, slots=True, kw_only=True)
class StepFinished(AttemptEnded):
    """A transformation is done; without artifacts it did not apply, for the reason given."""

    version: str
    artifacts: tuple[Artifact, ...] = ()
    reason: str = private()


@dataclass(frozen=True, slots=True, kw_only=True)
class JobDeferred(AttemptEnded):
    """A job's attempt failed and another is due; ``counted`` says whether it used one up."""

    version: str
    due_ms: int
    counted: bool
    lost: bool = False
    reason: str = private()


@dataclass(frozen=True, slots=True, kw_only=True)
class JobDied(AttemptEnded):
    """A job gave up: a dead letter."""

    version: str
    lost: bool = False
    reason: str = private()


@dataclass(frozen=True, slots=True, kw_only=True)
class JobStopped(AttemptEnded):
    """A running job that had been asked to stop did so; what it had made was dropped."""

    version: str


@dataclass(frozen=True, slots=True, kw_only=True)
class JobOrdered(Event):
    """What every operator's order about a job has."""

    job: str
    version: str


@dataclass(frozen=True, slots=True, kw_only=True)
class JobRetried(JobOrdered):
    """An operator had a job tried again; its count starts anew."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JobCancelled(JobOrdered):
    """An operator cancelled a job; ``asked`` says that it ran and was asked to stop."""

    asked: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class JobDiscarded(JobOrdered):
    """An operator discarded a dead job."""


# -- ends of versions, messages ------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Told(Event):
    """What every event has that makes messages."""

    sequence: int
    messages: tuple[MessageOrder, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class VersionCompleted(Told):
    """All that the recipe demands is done."""

    version: str


@dataclass(frozen=True, slots=True, kw_only=True)
class VersionFailed(Told):
    """A step that the recipe demands gave up."""

    version: str
    step: str
    reason: str = private()


@dataclass(frozen=True, slots=True, kw_only=True)
class FileTold(Told):
    """Receivers are told of the file itself: deleted, renamed, erased."""

    type: MessageType


@dataclass(frozen=True, slots=True, kw_only=True)
class MessageEnded(Event):
    """What every end of a message's claim has."""

    message: str
    attempt: int
    epoch: int


@dataclass(frozen=True, slots=True, kw_only=True)
class MessageDelivered(MessageEnded):
    """The destination took it; ``reference`` is the receiver's own id."""

    reference: str = private()


@dataclass(frozen=True, slots=True, kw_only=True)
class MessageDeferred(MessageEnded):
    """An attempt failed and another is due; ``reached`` says that the receiver had it."""

    due_ms: int
    counted: bool
    reached: bool
    reason: str = private()


@dataclass(frozen=True, slots=True, kw_only=True)
class MessageUnclear(MessageEnded):
    """Sent, and no answer came; held for an operator, or due again."""

    due_ms: int
    held: bool
    reason: str = private()


@dataclass(frozen=True, slots=True, kw_only=True)
class MessageDied(MessageEnded):
    """A message gave up: a dead letter."""

    reached: bool
    reason: str = private()


@dataclass(frozen=True, slots=True, kw_only=True)
class MessageResolved(Event):
    """An operator settled a message: delivered after all, sent again, or discarded."""

    message: str
    outcome: Literal["delivered", "resend", "discard"]


@dataclass(frozen=True, slots=True, kw_only=True)
class FileHeld(Event):
    """An operator put a hold on the file: it cannot be erased."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FileReleased(Event):
    """An operator lifted the hold."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FileErased(Event):
    """The file's content, names and message bodies were removed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ContentExpired(Event):
    """Artifacts of these versions, bytes of these messages: kept for their time, and no more."""

    versions: tuple[str, ...] = ()
    messages: tuple[str, ...] = ()


FileEvent = (
    VersionReported
    | FileDeleted
    | FileRestored
    | FileRenamed
    | EventIgnored
    | RunStarted
    | WorkRecalled
    | StepsOrdered
    | OriginalStored
    | StepFinished
    | JobDeferred
    | JobDied
    | JobStopped
    | JobRetried
    | JobCancelled
    | JobDiscarded
    | VersionCompleted
    | VersionFailed
    | FileTold
    | MessageDelivered
    | MessageDeferred
    | MessageUnclear
    | MessageDied
    | MessageResolved
    | FileHeld
    | FileReleased
    | FileErased
    | ContentExpired
)


_private: dict[str, tuple[str, ...]] = {}


def private_fields(kind: type[Event]) -> tuple[str, ...]:
    """The names of the fields of this kind of event that can be erased."""
    found = _private.get(kind.__name__)
    if found is None:
        found = tuple(f.name for f in fields(kind) if f.metadata.get("private"))
        _private[kind.__name__] = found
    return found

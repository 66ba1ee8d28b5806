"""What is known of one file: the state that its events fold to."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, TypeVar

from domain.events import Artifact, MessageType
from domain.order import Fact, View, ranking, view
from domain.work import (
    OPEN_JOB,
    OPEN_MESSAGE,
    JobKind,
    JobPhase,
    MessagePhase,
    VersionPhase,
)


@dataclass(frozen=True)
class Job:
    """One piece of work. ``attempts`` counts those that used one up, ``losses`` dead workers.

    ``input`` is the SHA-256 of the bytes that a transformation works on.
    """

    id: str
    kind: JobKind
    name: str
    version: str
    phase: JobPhase
    ordered_ms: int
    due_ms: int
    step: str = ""
    input: str = ""
    required: bool = True
    attempts: int = 0
    losses: int = 0
    epoch: int = 0
    run: int = 1
    recipe: str = ""
    asked: bool = False
    ended_ms: int = 0
    error: str = ""

    @property
    def is_open(self) -> bool:
        """Whether it may still be claimed."""
        return self.phase in OPEN_JOB


@dataclass(frozen=True)
class Message:
    """One notification of one destination. ``reached`` says that the receiver may know of it.

    ``meaning`` is what the receiver holds true of the file afterwards, "" where the message leaves
    that alone: a renaming, or a version that was not the current one. ``facts`` is how many of the
    file's facts were known when it was made. ``erased`` says that its bytes are gone.
    """

    id: str
    destination: str
    type: MessageType
    version: str
    sequence: int
    phase: MessagePhase
    ordered_ms: int
    due_ms: int
    meaning: str
    facts: int = 0
    attempts: int = 0
    epoch: int = 0
    run: int = 1
    reached: bool = False
    erased: bool = False
    ended_ms: int = 0
    error: str = ""
    reference: str = ""

    @property
    def is_open(self) -> bool:
        """Whether it may still be sent."""
        return self.phase in OPEN_MESSAGE


@dataclass(frozen=True)
class Version:
    """One content of the file.

    ``original`` is the SHA-256 of its bytes once they are there. ``outputs`` maps each finished
    step of this run to the key in ``File.made``, ``missing`` each step without a result to the
    reason; ``result`` is what ``outputs`` was when the version was last completed. ``reprocessed``
    is the recipe that an operator gave it, which enters the ids of its messages. ``erased`` says
    that its content was removed for good: nothing brings this version back.
    """

    version: str
    phase: VersionPhase
    recipe: str = ""
    run: int = 0
    reprocessed: str = ""
    media_type: str = ""
    size_bytes: int | None = None
    sha256: str = ""
    type: str = ""
    url: str = ""
    name: str = ""
    event_id: str = ""
    event: str = ""
    occurred_us: int | None = None
    original: str = ""
    jobs: tuple[str, ...] = ()
    outputs: dict[str, str] = field(default_factory=dict)
    result: dict[str, str] = field(default_factory=dict)
    missing: dict[str, str] = field(default_factory=dict)
    erased: bool = False
    step: str = ""
    error: str = ""
    reported_ms: int = 0
    completed_ms: int = 0


@dataclass(frozen=True)
class File:
    """The state of one file of one source; ``revision`` counts its events."""

    revision: int = 0
    source: str = ""
    file_id: str = ""
    project: str = ""
    facts: tuple[Fact, ...] = ()
    versions: dict[str, Version] = field(default_factory=dict)
    jobs: dict[str, Job] = field(default_factory=dict)
    messages: dict[str, Message] = field(default_factory=dict)
    made: dict[str, tuple[Artifact, ...]] = field(default_factory=dict)
    names: tuple[str, ...] = ()
    sequence: int = 0
    held: bool = False
    erased: bool = False
    opened_ms: int = 0
    changed_ms: int = 0

    @property
    def view(self) -> View:
        """What is true of the file by its facts; worked out once for each set of them."""
        cache = self.__dict__
        known: tuple[tuple[Fact, ...], View] | None = cache.get("_view")
        if known is None or known[0] is not self.facts:
            known = cache["_view"] = (self.facts, view(self.facts))
        return known[1]

    @property
    def generation(self) -> int:
        """One, and one more each time that the file's meaning was reopened at its source."""
        return self.view.generation

    @property
    def ranking(self) -> list[str]:
        """The known versions, oldest first."""
        return ranking(self.facts)


State = TypeVar("State", Job, Message, Version, File)


def changed(state: State, **news: Any) -> State:
    """The state with other values in these fields.

    Does what ``dataclasses.replace`` does at a tenth of its cost, which is most of the cost of a
    decision: the states have no slots for its sake. A name that is no field is a ``TypeError``.
    """
    if not news.keys() <= state.__dataclass_fields__.keys():
        raise TypeError(f"{type(state).__name__} has no such fields: {sorted(news)}")
    copy = object.__new__(type(state))
    copy.__dict__.update(state.__dict__, **news)
    return copy


ORIGINAL = "original"
NOTIFY = "notify:"
WORKING: frozenset[VersionPhase] = frozenset(
    {"received", "downloading", "transforming", "notifying"}
)


def made_key(original: str, step: str) -> str:
    """Where a step's artifacts of these bytes are found in ``File.made``."""
    return f"{original}:{step}"


def current_result(file: File) -> str:
    """The newest version whose artifacts are complete, or "": the one result shown as current."""
    if not file.view.is_present:
        return ""
    known = (file.versions[v] for v in reversed(file.ranking))
    return next((v.version for v in known if v.completed_ms and not v.erased), "")


def with_job(file: File, job: Job) -> File:
    """The file with this job in place of its former self."""
    return changed(file, jobs={**file.jobs, job.id: job})


def with_message(file: File, message: Message) -> File:
    """The file with this message in place of its former self."""
    return changed(file, messages={**file.messages, message.id: message})


def with_version(file: File, version: Version) -> File:
    """The file with this version in place of its former self."""
    return changed(file, versions={**file.versions, version.version: version})


def is_left(file: File, version: Version) -> bool:
    """Whether a version that is not wanted has nothing more to do: it tells nobody any more."""
    if version.phase == "notifying":
        return not any(m.is_open for m in completion_messages(file, version))
    return version.phase in WORKING


def completion_messages(file: File, version: Version) -> list[Message]:
    """The messages that tell of this run's completion."""
    return [
        m
        for m in file.messages.values()
        if m.version == version.version
        and m.run == version.run
        and m.type == "file.version.completed"
    ]


def meaning_of(kind: MessageType, about: Version | None) -> str:
    """What a receiver holds true of the file after this message, if it is about what is current."""
    return f"{kind}:{about.version}:{about.reprocessed}" if about else kind

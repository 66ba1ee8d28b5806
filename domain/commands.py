"""What is asked for: one frozen dataclass a request, in the imperative."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from domain.events import Artifact, FileEvent
from domain.outcomes import Again, Dead, Done, Unclear
from domain.recipes import Recipe
from domain.schedule import RetryPolicy
from domain.states import File

CauseKind = Literal["delivery", "attempt", "operator", "system"]


@dataclass(frozen=True, slots=True)
class Cause:
    """Who or what is behind a command. ``reason`` is an operator's, in words."""

    kind: CauseKind
    id: str = ""
    operator: str = ""
    reason: str = ""
    trace: str = ""


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a command was turned down, as a value: ``code`` for programs, ``reason`` for people."""

    code: Literal["unknown", "conflict", "nothing-to-do", "stale", "held", "superseded"]
    reason: str


@dataclass(frozen=True, slots=True)
class Destination:
    """What the core knows of a destination. ``body`` maps a receiver's field to a JSON Pointer."""

    name: str
    types: tuple[str, ...] = ("file.version.completed", "file.version.failed")
    format: Literal["standard", "cloudevents", "mapped"] = "standard"
    body: tuple[tuple[str, str], ...] = ()
    superseded: Literal["skip", "send"] = "skip"
    unclear: Literal["resend", "ask", "hold"] = "resend"


@dataclass(frozen=True, slots=True)
class Context:
    """What a decision may look at beside the state: nothing here is fetched by the core.

    ``recipes`` are all that were ever pinned, by digest; ``configured`` those of today, in order.
    ``in_flight`` are the ids of the file's jobs and messages under a lease. ``salt`` is fresh
    chance for this command, ``jitter`` a die from 0 to 1.
    """

    now_ms: int
    key: bytes
    recipes: Mapping[str, Recipe] = field(default_factory=dict)
    configured: tuple[Recipe, ...] = ()
    destinations: Mapping[str, Destination] = field(default_factory=dict)
    base_url: str = ""
    in_flight: frozenset[str] = frozenset()
    salt: bytes = b""
    jitter: float = 0.5


@dataclass(frozen=True, slots=True)
class Body:
    """The exact bytes of a message, with the salt of their commitment."""

    message: str
    salt: bytes
    data: bytes


@dataclass(frozen=True, slots=True)
class Decision:
    """What a command led to: events, the bytes of the messages that they order, the new state."""

    after: File
    events: tuple[FileEvent, ...] = ()
    bodies: tuple[Body, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class FileCommand:
    """What every command about a file has: the file's stream, and who is behind it."""

    stream: str
    cause: Cause


# -- facts ---------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class FactCommand(FileCommand):
    """What a source says; ``event`` is the derived id of the source event."""

    source: str
    event: str
    event_id: str
    file_id: str
    project: str = ""
    sequence: int | None = None
    occurred_us: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportVersion(FactCommand):
    """A content of the file was announced."""

    version: str
    value: str | None = None
    name: str = ""
    size_bytes: int | None = None
    sha256: str = ""
    media_type: str = ""
    type: str = ""
    url: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportDeletion(FactCommand):
    """The file was deleted at its source."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportRestoration(FactCommand):
    """The file is there again at its source."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportRename(FactCommand):
    """The file has another name at its source."""

    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportIgnored(FactCommand):
    """Something happened that starts no work."""

    type: str


# -- ends of attempts ----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Stored:
    """What a download or a step made; without artifacts the step did not apply, for ``reason``."""

    artifacts: tuple[Artifact, ...] = ()
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Lost:
    """The lease lapsed: whoever had claimed the work never came back."""


@dataclass(frozen=True, slots=True)
class Accepted:
    """The destination took the message; ``reference`` is its own id for it."""

    reference: str = ""


JobOutcome = Done[Stored] | Again | Dead | Lost
MessageOutcome = Done[Accepted] | Again | Dead | Unclear | Lost


@dataclass(frozen=True, slots=True, kw_only=True)
class FinishJob(FileCommand):
    """A claim of a job ends."""

    job: str
    epoch: int
    outcome: JobOutcome
    retry: RetryPolicy


@dataclass(frozen=True, slots=True, kw_only=True)
class FinishMessage(FileCommand):
    """A claim of a message ends; ``reached`` says that the receiver had the request."""

    message: str
    epoch: int
    outcome: MessageOutcome
    retry: RetryPolicy
    reached: bool = False


# -- operators' orders ---------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class RetryJob(FileCommand):
    """Try a dead, cancelled or discarded job again; or a waiting one at once."""

    job: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CancelJob(FileCommand):
    """Stop a job; a running one is asked to."""

    job: str


@dataclass(frozen=True, slots=True, kw_only=True)
class DiscardJob(FileCommand):
    """Give a dead job up for good."""

    job: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ResolveMessage(FileCommand):
    """Settle a message; ``force`` sends what a newer version has superseded.

    ``ordered_ms`` is when a lasting order was given that this is part of, 0 for none: a message
    that was sent again since then has had its share of it.
    """

    message: str
    outcome: Literal["delivered", "resend", "discard"]
    force: bool = False
    ordered_ms: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Reprocess(FileCommand):
    """Begin a new run of a version under another recipe ("" for the configured one)."""

    version: str = ""
    recipe: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class HoldFile(FileCommand):
    """Protect the file from erasure."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReleaseFile(FileCommand):
    """Lift the hold."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EraseFile(FileCommand):
    """Remove the file's content, names and message bodies."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpireContent(FileCommand):
    """Forget what ended up to these moments; ``None`` forgets nothing of the kind.

    Artifacts of a file that is deleted at its source, of all others, and the bytes of messages.
    """

    deleted_before_ms: int | None = None
    artifacts_before_ms: int | None = None
    messages_before_ms: int | None = None


AnyFileCommand = (
    ReportVersion
    | ReportDeletion
    | ReportRestoration
    | ReportRename
    | ReportIgnored
    | FinishJob
    | FinishMessage
    | RetryJob
    | CancelJob
    | DiscardJob
    | ResolveMessage
    | Reprocess
    | HoldFile
    | ReleaseFile
    | EraseFile
    | ExpireContent
)

"""What operators order: recorded once per idempotency key, refused in words, tried out dry."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, TypeVar

import msgspec
from litestar.params import HeaderParameter
from msgspec import Struct

from app.artifacts import ERASURES, BlobsError
from app.ledger.requests import Control, Order, Recorded, Request
from app.store import idempotency
from app.store.idempotency import Before
from app.store.reading import erasures
from app.store.reading.files import Found
from app.telemetry import log
from app.web.api.office import Office
from app.web.auth import Who
from app.web.problems import Problem
from app.web.rest import ProblemError
from domain.commands import AnyFileCommand, Decision, EraseFile, Refusal
from domain.decider import decide
from domain.events import StepsOrdered
from domain.installation import ControlEvent

S = TypeVar("S", bound=Struct)

IdempotencyKey = Annotated[
    str,
    HeaderParameter(
        name="Idempotency-Key",
        max_length=255,
        description="the same key and request again get the same answer, and nothing happens twice",
    ),
]
_WAIT_S = 30.0
_DRY_SALT = bytes(16)


class Ordered(Struct):
    """What an order led to: the events that were recorded."""

    status: str
    events: list[str]


class Preview(Struct):
    """What an order would lead to, without its being given; ``code`` is a refusal's."""

    would: bool
    code: str
    reason: str
    events: list[str]
    jobs: list[str]
    messages: list[str]


@dataclass(frozen=True, slots=True)
class Call:
    """A request that may come twice: what it is, and the key that its client gave it."""

    what: str
    body: Struct
    key: str

    @property
    def digest(self) -> str:
        """What tells two requests apart that came under one key."""
        whole = self.what.encode() + b"\0" + msgspec.json.encode(self.body)
        return hashlib.sha256(whole).hexdigest()


def once(office: Office, who: Who, call: Call, work: Callable[[], S], kind: type[S]) -> S:
    """Do the work, or tell what was answered when it was done under the same key."""
    if not call.key:
        return work()
    key = hashlib.sha256(f"{who.token}\0{call.key}".encode()).hexdigest()
    before = office.ledger.operate(lambda c, now: idempotency.begin(c, key, call.digest, now))
    if before is not None:
        return msgspec.json.decode(_told(before, call), type=kind)
    try:
        done = work()
    except BaseException:
        office.ledger.operate(lambda c, _: idempotency.finish(c, key, None))
        raise
    answer = msgspec.json.encode(done)
    office.ledger.operate(lambda c, _: idempotency.finish(c, key, answer))
    return done


def _told(before: Before, call: Call) -> bytes:
    if before.digest != call.digest:
        raise ProblemError(Problem(422, "idempotency-conflict"))
    if before.answer is None:
        raise ProblemError(Problem(409, "idempotency-conflict", "the first is still under way"))
    return before.answer


def order(office: Office, *commands: AnyFileCommand) -> Ordered:
    """Give orders about files; a refusal of the last is the answer, as a problem."""
    ordered = submit(office, *(Order(command) for command in commands))
    for command in commands:
        if isinstance(command, EraseFile):
            _note_erasure(office, command.stream)
    return ordered


def _note_erasure(office: Office, stream: str) -> None:
    """Leave word of it outside the database: an older backup, restored, knows nothing of it."""
    try:
        office.blobs.notes.put(ERASURES, *erasures.note(stream, office.now_ms))
    except (BlobsError, OSError):
        # It is on the log: the next sweep makes up for it.
        log.warning("erasure.not_noted", stream=stream)


def control(office: Office, event: ControlEvent, who: Who, reason: str) -> Ordered:
    """Give an order about the installation."""
    return submit(office, Control(event, who.cause(reason)))


def submit(office: Office, *requests: Request) -> Ordered:
    """Have requests recorded together; a refusal is raised as a problem."""
    answers = office.ledger.submit(*requests).result(_WAIT_S)
    events: list[str] = []
    for answer in answers:
        if isinstance(answer, Refusal):
            raise refused(answer)
        if isinstance(answer, Recorded):
            events += [type(event).__name__ for event in answer.events]
    return Ordered("recorded", events)


def refused(refusal: Refusal) -> ProblemError:
    """A refusal as clients see it."""
    if refusal.code == "unknown":
        return ProblemError(Problem(404, "not-found", refusal.reason))
    return ProblemError(Problem(409, "conflict", refusal.reason, {"code": refusal.code}))


def try_out(office: Office, found: Found, command: AnyFileCommand) -> Preview:
    """What an order would lead to: the same decision, and nothing is recorded."""
    context = office.ledger.book.context(
        now_ms=office.now_ms, salt=_DRY_SALT, jitter=0.5, in_flight=frozenset(found.running)
    )
    decided = decide(found.file, command, context)
    if isinstance(decided, Refusal):
        return Preview(
            would=False,
            code=decided.code,
            reason=decided.reason,
            events=[],
            jobs=[],
            messages=[],
        )
    return Preview(
        would=bool(decided.events),
        code="" if decided.events else "nothing-to-do",
        reason="" if decided.events else "nothing is left to do",
        events=[type(event).__name__ for event in decided.events],
        jobs=_jobs(decided),
        messages=[
            f"{order.destination}: {order.id}"
            for event in decided.events
            for order in getattr(event, "messages", ())
            if hasattr(order, "destination")
        ],
    )


def _jobs(decided: Decision) -> list[str]:
    named: list[str] = []
    for event in decided.events:
        if isinstance(event, StepsOrdered):
            named += [f"{job.name}: {job.id}" for job in event.jobs]
        elif job := getattr(event, "job", ""):
            named.append(f"download: {job}" if type(event).__name__ == "RunStarted" else job)
    return named

"""The end of a claim: what the Ledger is told, and what it means for the rest of its scope."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import assert_never

from app.ledger.requests import Answer, Control, Finish, Recorded, Request
from app.store import queue
from app.store.engine import Connection
from app.store.leases import Lease, WorkKind
from domain.commands import Cause, FinishJob, FinishMessage, Lost, Stored
from domain.events import (
    Event,
    FileTold,
    RunStarted,
    StepsOrdered,
    VersionCompleted,
    VersionFailed,
    VersionReported,
)
from domain.installation import Paused
from domain.outcomes import Again, Dead, Done, Unclear
from domain.schedule import RetryPolicy
from jobs.runner.claims import Wanted
from jobs.runner.effects import Result

# So many in a row are no longer the fault of single messages: each further one would be another
# dead letter that somebody has to bring back.
PAUSED_AFTER = 20


def requests(
    finish: Finish, lease: Lease, result: Result, now_ms: int, *, refused: int
) -> tuple[Request, ...]:
    """What is recorded together: the end of the claim, and the pause that follows from it.

    A receiver asks for one by 410; or it has refused ``refused`` messages before this one for good.
    """
    outcome = result.outcome
    if not isinstance(outcome, Dead):
        return (finish,)
    if outcome.pauses:
        why = outcome.reason
    elif refused + 1 >= PAUSED_AFTER:
        why = f"{PAUSED_AFTER} in a row were refused for good, the last: {outcome.reason}"
    else:
        return (finish,)
    event = Paused(at_ms=now_ms, what=lease.scope, reason=why)
    return finish, Control(event, Cause("attempt", lease.id, trace=finish.command.cause.trace))


def finish_of(lease: Lease, result: Result, retry: RetryPolicy, trace: str = "") -> Finish:
    """The end of this claim, as the Ledger takes it; ``trace`` is the context of its span."""
    cause = Cause("attempt", f"{lease.id}:{lease.epoch}", trace=trace)
    outcome = result.outcome
    command: FinishJob | FinishMessage
    if lease.kind == "message":
        command = FinishMessage(
            stream=lease.stream,
            cause=cause,
            message=lease.id,
            epoch=lease.epoch,
            outcome=outcome,  # type: ignore[arg-type]
            retry=retry,
            reached=result.reached,
        )
    else:
        command = FinishJob(
            stream=lease.stream,
            cause=cause,
            job=lease.id,
            epoch=lease.epoch,
            outcome=outcome,  # type: ignore[arg-type]
            retry=retry,
        )
    return Finish(
        command=command,
        incarnation=lease.incarnation,
        exchange=result.exchange,
        outcome=_recorded_word(lease, result),
        error="" if isinstance(outcome, (Done, Lost)) else outcome.reason,
    )


def _recorded_word(lease: Lease, result: Result) -> str:
    """A message whose sender died may have arrived: its attempt is unclear, not lost."""
    is_lost_message = lease.kind == "message" and isinstance(result.outcome, Lost)
    return "unclear" if is_lost_message else word(result)


def word(result: Result) -> str:
    """The outcome in the words of the glossary."""
    match result.outcome:
        case Done():
            return "done"
        case Again():
            return "again"
        case Dead():
            return "dead"
        case Unclear():
            return "unclear"
        case Lost():
            return "lost"
        case _:
            assert_never(result.outcome)


def is_success(result: Result) -> bool | None:
    """What the attempt says of the other side's health; ``None`` if it says nothing."""
    match result.outcome:
        case Done():
            return True
        case Again(trouble=True) | Unclear() | Lost():
            return False
        case Again() | Dead():
            # An answer that refuses the content comes from a healthy receiver.
            return True if result.reached else None
        case _:
            assert_never(result.outcome)


def stored_bytes(result: Result) -> int:
    """How many bytes of artifacts came of it."""
    match result.outcome:
        case Done(result=Stored(artifacts=made)):
            return sum(artifact.size_bytes for artifact in made)
        case _:
            return 0


def wait_for_others(connection: Connection, lease: Lease, result: Result, now_ms: int) -> None:
    """Let a wait that was asked of everyone hold for the whole scope."""
    match result.outcome:
        case Again(everyone=True, wait_s=float() as wait_s, reason=reason):
            until_ms = now_ms + round(wait_s * 1000)
            queue.ask_to_wait(connection, lease.scope, until_ms, reason)
        case _:
            pass


def successors(answers: Iterable[Answer]) -> Iterator[Wanted]:
    """The work that these events ordered, to be claimed by whoever ended the one before."""
    for answer in answers:
        if isinstance(answer, Recorded):
            for event in answer.events:
                for work, kind in _ordered(event):
                    yield Wanted(work, kind, answer.stream, answer.file)


def _ordered(event: Event) -> Iterator[tuple[str, WorkKind]]:
    match event:
        case StepsOrdered(jobs=orders):
            yield from ((order.id, order.kind) for order in orders)
        case VersionCompleted(messages=told) | VersionFailed(messages=told):
            yield from ((order.id, "message") for order in told)
        case FileTold(messages=told):
            yield from ((order.id, "message") for order in told)
        case RunStarted(job=job) | VersionReported(job=job) if job:
            yield job, "download"
        case _:
            pass

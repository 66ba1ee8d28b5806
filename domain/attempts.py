"""How a claim ends, decided: done, again, dead, unclear or lost - and what comes of it."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any, assert_never

from domain import commands as c
from domain import events as e
from domain.commands import Refusal
from domain.consequences import is_wanted, recall, recall_of_file, tell_name
from domain.draft import Draft
from domain.outcomes import Again, Dead, Done, Unclear
from domain.progress import advance, fail
from domain.schedule import Tries, next_try
from domain.states import File, Job, Message

MOST_LOSSES = 3
# An uncounted wait that nobody measured: a full disk, a lock without a hint.
UNCOUNTED_WAIT_MS = 30_000


def finish_job(draft: Draft, command: c.FinishJob) -> Refusal | None:
    """End a claim of a job with exactly one event, and order what follows."""
    job = draft.file.jobs.get(command.job)
    if job is None or not job.is_open or command.epoch <= job.epoch:
        return Refusal("stale", "the job has ended or belongs to a later claim")
    if job.asked or (not isinstance(command.outcome, Done) and not _is_needed(draft, job)):
        draft.add(e.JobStopped(version=job.version, **_ending(draft, command, job.attempts)))
        advance(draft, job.version)
        return None
    match command.outcome:
        case Done(result=result):
            _job_done(draft, command, job, result)
        case Again() as again:
            _job_again(draft, command, job, again)
        case Dead(reason=reason):
            _job_dead(draft, command, job, reason)
        case c.Lost():
            _job_lost(draft, command, job)
        case _:
            assert_never(command.outcome)
    return None


def _is_needed(draft: Draft, job: Job) -> bool:
    version = draft.file.versions[job.version]
    return job.id in version.jobs and is_wanted(draft, version, draft.file.view)


def _ending(draft: Draft, command: c.FinishJob, attempts: int) -> dict[str, Any]:
    return {
        "at_ms": draft.now_ms,
        "job": command.job,
        "attempt": attempts,
        "epoch": command.epoch,
    }


def _job_done(draft: Draft, command: c.FinishJob, job: Job, result: c.Stored) -> None:
    ending = _ending(draft, command, job.attempts + 1)
    if job.kind == "download":
        artifact = result.artifacts[0]
        draft.add(e.OriginalStored(version=job.version, artifact=artifact, **ending))
    else:
        draft.add(
            e.StepFinished(
                version=job.version,
                artifacts=result.artifacts,
                reason=result.reason,
                **ending,
            )
        )
    advance(draft, job.version)


def _job_again(draft: Draft, command: c.FinishJob, job: Job, again: Again) -> None:
    attempts = job.attempts + again.counted
    due_ms = _due_ms(draft, command, (attempts, job.ordered_ms), again)
    if due_ms is None:
        tries = "attempt" if attempts == 1 else "attempts"
        _job_dead(draft, command, job, f"{again.reason}, {attempts} {tries}")
        return
    draft.add(
        e.JobDeferred(
            version=job.version,
            due_ms=due_ms,
            counted=again.counted,
            reason=again.reason,
            **_ending(draft, command, attempts),
        )
    )


def _job_dead(
    draft: Draft, command: c.FinishJob, job: Job, reason: str, *, lost: bool = False
) -> None:
    ending = _ending(draft, command, job.attempts + 1)
    draft.add(e.JobDied(version=job.version, reason=reason, lost=lost, **ending))
    version = draft.file.versions[job.version]
    if job.kind == "download" and job.id in version.jobs:
        fail(draft, version, draft.file.jobs[job.id])
    else:
        advance(draft, job.version)


def _job_lost(draft: Draft, command: c.FinishJob, job: Job) -> None:
    if job.losses + 1 >= MOST_LOSSES:
        _job_dead(draft, command, job, f"worker died {MOST_LOSSES} times", lost=True)
        return
    draft.add(
        e.JobDeferred(
            version=job.version,
            due_ms=draft.now_ms,
            counted=True,
            lost=True,
            reason="the worker died",
            **_ending(draft, command, job.attempts + 1),
        )
    )


def _due_ms(
    draft: Draft,
    command: c.FinishJob | c.FinishMessage,
    tries: tuple[int, int],
    again: Again,
) -> int | None:
    if not again.counted:
        wait_ms = UNCOUNTED_WAIT_MS if again.wait_s is None else int(again.wait_s * 1000)
        return draft.now_ms + wait_ms
    counted, first_ms = tries
    at = next_try(
        command.retry,
        Tries(counted, _moment(first_ms)),
        now=_moment(draft.now_ms),
        jitter=draft.context.jitter,
        asked_wait_s=again.wait_s,
    )
    return None if at is None else round(at.timestamp() * 1000)


def _moment(at_ms: int) -> datetime:
    return datetime.fromtimestamp(at_ms / 1000, UTC)


# -- messages ------------------------------------------------------------------------------------


def finish_message(draft: Draft, command: c.FinishMessage) -> Refusal | None:
    """End a claim of a message with exactly one event."""
    message = draft.file.messages.get(command.message)
    if message is None or not message.is_open or command.epoch <= message.epoch:
        return Refusal("stale", "the message has ended or belongs to a later claim")
    match command.outcome:
        case Done(result=accepted):
            draft.add(
                e.MessageDelivered(
                    reference=accepted.reference, **_message_ending(draft, command, message)
                )
            )
        case Again() as again:
            _message_again(draft, command, message, again)
        case Dead(reason=reason):
            _message_dead(draft, command, message, reason, reached=command.reached)
        case Unclear(reason=reason):
            _message_unclear(draft, command, message, reason)
        case c.Lost():
            _message_unclear(draft, command, message, "the sender died while it was sending")
        case _:
            assert_never(command.outcome)
    tell_name(draft)
    return None


def _message_ending(
    draft: Draft, command: c.FinishMessage, message: Message, *, counted: bool = True
) -> dict[str, Any]:
    return {
        "at_ms": draft.now_ms,
        "message": command.message,
        "attempt": message.attempts + counted,
        "epoch": command.epoch,
    }


def _message_again(draft: Draft, command: c.FinishMessage, message: Message, again: Again) -> None:
    attempts = message.attempts + again.counted
    due_ms = _due_ms(draft, command, (attempts, message.ordered_ms), again)
    if due_ms is None:
        _message_dead(draft, command, message, again.reason, reached=command.reached)
        return
    draft.add(
        e.MessageDeferred(
            due_ms=due_ms,
            counted=again.counted,
            reached=command.reached,
            reason=again.reason,
            **_message_ending(draft, command, message, counted=again.counted),
        )
    )
    _recall_if_old(draft, message)


def _message_dead(
    draft: Draft, command: c.FinishMessage, message: Message, reason: str, *, reached: bool
) -> None:
    ending = _message_ending(draft, command, message)
    draft.add(e.MessageDied(reached=reached, reason=reason, **ending))


def _message_unclear(draft: Draft, command: c.FinishMessage, message: Message, reason: str) -> None:
    destination = draft.context.destinations.get(message.destination)
    is_held = destination is not None and destination.unclear == "hold"
    again = Again(reason=reason)
    tries = (message.attempts + 1, message.ordered_ms)
    due_ms = _due_ms(draft, command, tries, again)
    if due_ms is None and not is_held:
        _message_dead(draft, command, message, reason, reached=True)
        return
    draft.add(
        e.MessageUnclear(
            due_ms=due_ms or draft.now_ms,
            held=is_held,
            reason=reason,
            **_message_ending(draft, command, message),
        )
    )
    _recall_if_old(draft, message)


def _recall_if_old(draft: Draft, message: Message) -> None:
    """What could not be sent in time and is about the past now is not tried again."""
    file: File = draft.file
    seen = file.view
    version = file.versions.get(message.version)
    if version is not None and not is_wanted(draft, version, seen):
        recall(draft, version, _why_recalled(file), done=message.id)
    elif version is None and (seen.is_present or file.erased):
        recall_of_file(draft, _why_recalled(file), done=message.id)


def _why_recalled(file: File) -> e.RecallReason:
    if file.erased:
        return "erased"
    return "superseded" if file.view.is_present else "deleted"

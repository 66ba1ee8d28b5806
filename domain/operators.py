"""What operators order, decided: retry, cancel, discard, resolve, reprocess, hold, erase."""

from __future__ import annotations

from domain import commands as c
from domain import events as e
from domain.commands import Refusal
from domain.consequences import is_wanted, recall, recall_of_file, tell_name
from domain.draft import Draft
from domain.progress import advance, start_run
from domain.recipes import Candidate, choose
from domain.states import WORKING, Message, Version
from domain.telling import Notice, holds_true


def retry_job(draft: Draft, command: c.RetryJob) -> Refusal | None:
    """Have dead work tried again, or a waiting job at once; never a second time at once."""
    job = draft.file.jobs.get(command.job)
    if job is None:
        return Refusal("unknown", "there is no such job")
    if job.id in draft.context.in_flight:
        return Refusal("conflict", "the job is running")
    if job.phase == "ready":
        return Refusal("conflict", "already queued")
    if job.phase == "done":
        return Refusal("nothing-to-do", "the job is done; reprocess makes a new run")
    version = draft.file.versions[job.version]
    if job.id not in version.jobs:
        return Refusal("superseded", "the job belongs to an earlier run")
    if not is_wanted(draft, version, draft.file.view):
        return Refusal("superseded", "a newer version or a deletion has overtaken it")
    draft.add(e.JobRetried(at_ms=draft.now_ms, job=job.id, version=job.version))
    return None


def cancel_job(draft: Draft, command: c.CancelJob) -> Refusal | None:
    """Stop a job that is open; one that runs is asked to."""
    job = draft.file.jobs.get(command.job)
    if job is None:
        return Refusal("unknown", "there is no such job")
    if not job.is_open:
        return Refusal("conflict", f"the job is {job.phase}")
    if job.asked:
        return Refusal("conflict", "the job was asked to stop already")
    asked = job.id in draft.context.in_flight
    draft.add(e.JobCancelled(at_ms=draft.now_ms, job=job.id, version=job.version, asked=asked))
    advance(draft, job.version)
    return None


def discard_job(draft: Draft, command: c.DiscardJob) -> Refusal | None:
    """Give a dead job up for good."""
    job = draft.file.jobs.get(command.job)
    if job is None:
        return Refusal("unknown", "there is no such job")
    if job.phase != "dead":
        return Refusal("conflict", f"only a dead job can be discarded; this one is {job.phase}")
    draft.add(e.JobDiscarded(at_ms=draft.now_ms, job=job.id, version=job.version))
    return None


def resolve_message(draft: Draft, command: c.ResolveMessage) -> Refusal | None:
    """Settle a message by hand: it arrived, it is sent again, or it is given up."""
    message = draft.file.messages.get(command.message)
    if message is None:
        return Refusal("unknown", "there is no such message")
    if message.id in draft.context.in_flight:
        return Refusal("conflict", "the message is being sent")
    if command.outcome == "resend":
        refusal = _resend_refusal(draft, command)
    elif message.phase in {"delivered", "skipped", "discarded"}:
        refusal = Refusal("conflict", f"the message is {message.phase}")
    elif command.outcome == "delivered" and message.phase == "pending":
        refusal = Refusal("conflict", f"the message is {message.phase}, not unclear")
    else:
        refusal = None
    if refusal is None:
        draft.add(
            e.MessageResolved(at_ms=draft.now_ms, message=message.id, outcome=command.outcome)
        )
        tell_name(draft)
    return refusal


def _resend_refusal(draft: Draft, command: c.ResolveMessage) -> Refusal | None:
    message = draft.file.messages[command.message]
    if message.erased:
        return Refusal(
            "conflict", "the bytes of the message are gone: erased, or kept for their time"
        )
    if 0 < command.ordered_ms <= message.ordered_ms:
        return Refusal("nothing-to-do", "it was sent again since the order was given")
    if message.phase == "pending":
        return Refusal("conflict", "already queued")
    if _is_overtaken(draft, message) and not command.force:
        return Refusal("superseded", "what it says is not so any more; force sends it anyway")
    return None


def _is_overtaken(draft: Draft, message: Message) -> bool:
    """Whether the message would tell the past as if it were the present."""
    version = draft.file.versions.get(message.version)
    if version is not None and not is_wanted(draft, version, draft.file.view):
        return True
    if message.type == "file.deleted" and draft.file.view.is_present:
        return True
    return bool(message.meaning) and holds_true(draft.file, message.destination) not in {
        message.meaning,
        "",
    }


def reprocess(draft: Draft, command: c.Reprocess) -> Refusal | None:
    """Begin a new run, if the recipe differs from the one that was pinned."""
    seen = draft.file.view
    version = draft.file.versions.get(command.version or seen.newest)
    if version is None:
        return Refusal("unknown", "there is no such version")
    if not seen.is_present:
        return Refusal("conflict", "the file is deleted at its source")
    recipe = command.recipe or _configured(draft, version)
    if not recipe or recipe not in draft.context.recipes:
        return Refusal("unknown", "no recipe matches this version")
    if version.erased:
        return Refusal("conflict", "the version was erased")
    if recipe == version.recipe:
        return Refusal("nothing-to-do", "the recipe has not changed since; retry tries again")
    is_old = version.version != seen.current
    if is_old and draft.context.recipes[recipe].versions == "latest":
        return Refusal("superseded", "a newer version has superseded it")
    recall(draft, version, "reprocessed")
    reason: e.RunReason = "reprocessed" if version.recipe else "matched"
    start_run(draft, version, reason=reason, recipe=recipe)
    advance(draft, version.version)
    return None


def _configured(draft: Draft, version: Version) -> str:
    file = draft.file
    candidate = Candidate(
        source=file.source,
        type=version.type,
        name=file.view.name or version.name,
        project=file.project,
        media_type=version.media_type,
        size_bytes=version.size_bytes,
    )
    recipe = choose(draft.context.configured, candidate)
    return recipe.digest if recipe else ""


def hold_file(draft: Draft, _: c.HoldFile) -> Refusal | None:
    """Protect the file from erasure."""
    if draft.file.held:
        return Refusal("nothing-to-do", "the file is on hold already")
    draft.add(e.FileHeld(at_ms=draft.now_ms))
    return None


def release_file(draft: Draft, _: c.ReleaseFile) -> Refusal | None:
    """Lift the hold."""
    if not draft.file.held:
        return Refusal("nothing-to-do", "the file is not on hold")
    draft.add(e.FileReleased(at_ms=draft.now_ms))
    return None


def erase_file(draft: Draft, _: c.EraseFile) -> Refusal | None:
    """Recall all work, tell those who had the file, and blank it."""
    if draft.file.held:
        return Refusal("held", "the file is on hold; release it first")
    if draft.file.erased:
        return Refusal("nothing-to-do", "the file was erased already")
    for version in tuple(draft.file.versions.values()):
        recall(draft, version, "erased")
    recall_of_file(draft, "erased")
    sequence, orders = draft.tell(Notice("file.erased"))
    if orders:
        draft.add(
            e.FileTold(at_ms=draft.now_ms, type="file.erased", sequence=sequence, messages=orders)
        )
    draft.add(e.FileErased(at_ms=draft.now_ms))
    return None


def expire_content(draft: Draft, command: c.ExpireContent) -> Refusal | None:
    """Forget what was kept for long enough; nothing that is worked on, or of a file on hold."""
    if draft.file.held:
        return Refusal("held", "the file is on hold; release it first")
    versions = tuple(v.version for v in draft.file.versions.values() if _is_due(draft, v, command))
    before_ms = command.messages_before_ms
    messages = tuple(
        m.id
        for m in draft.file.messages.values()
        if before_ms is not None
        and m.phase in _ENDED
        and not m.erased
        and 0 < m.ended_ms <= before_ms
    )
    if not versions and not messages:
        return Refusal("nothing-to-do", "nothing of the file is due")
    draft.add(e.ContentExpired(at_ms=draft.now_ms, versions=versions, messages=messages))
    return None


# A dead message may yet be sent again, by an operator, for as long as its bytes are kept.
_ENDED = frozenset({"delivered", "dead", "skipped", "discarded"})


def _is_due(draft: Draft, version: Version, command: c.ExpireContent) -> bool:
    is_gone = not draft.file.view.is_present
    before_ms = command.deleted_before_ms if is_gone else command.artifacts_before_ms
    since_ms = draft.file.changed_ms if is_gone else version.completed_ms
    if before_ms is None or not version.original or not 0 < since_ms <= before_ms:
        return False
    is_open = any(draft.file.jobs[job].is_open for job in version.jobs)
    return not is_open and version.phase not in {*WORKING, "waiting"}

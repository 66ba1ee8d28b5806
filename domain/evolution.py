"""(state, event) -> state: what an event makes of a file. Total, and blind to the clock."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import reduce
from typing import Any

from domain import events as e
from domain.events import FileEvent
from domain.evolve_facts import (
    event_ignored,
    file_deleted,
    file_renamed,
    file_restored,
    version_reported,
)
from domain.evolve_messages import (
    file_told,
    message_deferred,
    message_delivered,
    message_died,
    message_resolved,
    message_unclear,
    version_completed,
    version_failed,
)
from domain.evolve_work import (
    job_cancelled,
    job_deferred,
    job_died,
    job_discarded,
    job_retried,
    job_stopped,
    original_stored,
    run_started,
    step_finished,
    steps_ordered,
    work_recalled,
)
from domain.states import File, Message, Version, changed
from domain.work import moved_version


def evolve(file: File, event: FileEvent) -> File:
    """The file after this event; raises ``IllegalTransitionError`` for one that cannot follow."""
    opened_ms = file.opened_ms or event.at_ms
    counted = changed(file, revision=file.revision + 1, opened_ms=opened_ms, changed_ms=event.at_ms)
    return EVOLVERS[type(event)](counted, event)


def fold(history: Iterable[FileEvent], start: File | None = None) -> File:
    """The file that these events, in order of revision, lead to."""
    return reduce(evolve, history, start or File())


def file_held(file: File, _: e.FileHeld) -> File:
    return changed(file, held=True)


def file_released(file: File, _: e.FileReleased) -> File:
    return changed(file, held=False)


def file_erased(file: File, _: e.FileErased) -> File:
    """Blank all that came from private parts, so that it equals a fold of the erased events."""
    return changed(
        file,
        file_id="",
        project="",
        names=(),
        erased=True,
        made={},
        facts=tuple(replace(fact, name="") for fact in file.facts),
        versions={name: _erased_version(v) for name, v in file.versions.items()},
        jobs={name: changed(job, error="") for name, job in file.jobs.items()},
        messages={name: _erased_message(m) for name, m in file.messages.items()},
    )


def _erased_version(version: Version) -> Version:
    return changed(
        version,
        phase=moved_version(version.phase, "deleted"),
        erased=True,
        url="",
        name="",
        event_id="",
        step="",
        error="",
        outputs={},
        result={},
        missing={},
    )


def _erased_message(message: Message) -> Message:
    """The message without what was private; the one that tells of the erasure is yet to be sent."""
    if message.type == "file.erased" and message.is_open:
        return message
    error = message.error if message.phase == "skipped" else ""
    return changed(message, erased=True, error=error, reference="")


def content_expired(file: File, event: e.ContentExpired) -> File:
    """The versions are as if their bytes had never come; what other versions share stays."""
    told = {name: changed(file.messages[name], erased=True) for name in event.messages}
    gone = {name: changed(file.versions[name], **_NO_CONTENT) for name in event.versions}
    versions = {**file.versions, **gone}
    kept = {v.original for v in versions.values() if v.original}
    made = {key: found for key, found in file.made.items() if key.partition(":")[0] in kept}
    return changed(file, versions=versions, made=made, messages={**file.messages, **told})


_NO_CONTENT: dict[str, Any] = {"original": "", "outputs": {}, "result": {}, "completed_ms": 0}


EVOLVERS: dict[type, Callable[[File, Any], File]] = {
    e.VersionReported: version_reported,
    e.FileDeleted: file_deleted,
    e.FileRestored: file_restored,
    e.FileRenamed: file_renamed,
    e.EventIgnored: event_ignored,
    e.RunStarted: run_started,
    e.WorkRecalled: work_recalled,
    e.StepsOrdered: steps_ordered,
    e.OriginalStored: original_stored,
    e.StepFinished: step_finished,
    e.JobDeferred: job_deferred,
    e.JobDied: job_died,
    e.JobStopped: job_stopped,
    e.JobRetried: job_retried,
    e.JobCancelled: job_cancelled,
    e.JobDiscarded: job_discarded,
    e.VersionCompleted: version_completed,
    e.VersionFailed: version_failed,
    e.FileTold: file_told,
    e.MessageDelivered: message_delivered,
    e.MessageDeferred: message_deferred,
    e.MessageUnclear: message_unclear,
    e.MessageDied: message_died,
    e.MessageResolved: message_resolved,
    e.FileHeld: file_held,
    e.FileReleased: file_released,
    e.FileErased: file_erased,
    e.ContentExpired: content_expired,
}

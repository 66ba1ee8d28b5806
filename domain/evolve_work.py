"""What runs and jobs make of a file."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from domain import events as e
from domain.events import JobOrder
from domain.states import (
    ORIGINAL,
    WORKING,
    File,
    Job,
    Version,
    completion_messages,
    made_key,
    with_job,
    with_message,
    with_version,
)
from domain.work import VersionPhase, moved_job, moved_message, moved_version


def with_orders(file: File, event: e.Event, version: Version, orders: tuple[JobOrder, ...]) -> File:
    jobs = {order.id: _ordered(file, event, version, order) for order in orders}
    known = tuple(job for job in version.jobs if job not in jobs)
    version = replace(version, jobs=(*known, *jobs))
    return with_version(replace(file, jobs={**file.jobs, **jobs}), version)


def _ordered(file: File, event: e.Event, version: Version, order: JobOrder) -> Job:
    """A fresh job; one that existed before keeps its epoch, and goes on if it is open."""
    known = file.jobs.get(order.id)
    if known and known.is_open:
        return known
    return Job(
        id=order.id,
        kind=order.kind,
        name=order.name,
        version=version.version,
        phase="ready",
        ordered_ms=event.at_ms,
        due_ms=event.at_ms,
        step=order.step,
        required=order.required,
        epoch=known.epoch if known else 0,
        run=version.run,
        recipe=version.recipe,
    )


def run_started(file: File, event: e.RunStarted) -> File:
    version = file.versions[event.version]
    is_reopened = event.reason in {"restored", "reopened"}
    version = replace(
        version,
        phase=moved_version(version.phase, "received"),
        run=event.run,
        recipe=event.recipe,
        reprocessed=event.recipe if event.reason == "reprocessed" else version.reprocessed,
        jobs=(),
        outputs={},
        missing={},
        step="",
        error="",
    )
    file = replace(file, generation=file.generation + is_reopened)
    file = with_version(file, version)
    if not event.job:
        return file
    return with_orders(file, event, version, (JobOrder(event.job, "download", "download"),))


def work_recalled(file: File, event: e.WorkRecalled) -> File:
    for job_id in event.jobs:
        file = _with_job_phase(file, job_id, "cancelled", event.at_ms)
    for job_id in event.asked:
        file = with_job(file, replace(file.jobs[job_id], asked=True))
    for message_id in event.messages:
        message = file.messages[message_id]
        phase = moved_message(message.phase, "skipped")
        file = with_message(
            file, replace(message, phase=phase, ended_ms=event.at_ms, error=event.reason)
        )
    version = file.versions.get(event.version)
    if version and event.reason == "superseded" and version.phase in WORKING:
        phase_now: VersionPhase = _superseded_phase(file, version)
        file = with_version(file, replace(version, phase=moved_version(version.phase, phase_now)))
    return file


def _superseded_phase(file: File, version: Version) -> VersionPhase:
    """A version that still tells someone goes on doing so; all else is superseded."""
    is_telling = any(m.is_open for m in completion_messages(file, version))
    return version.phase if version.phase == "notifying" and is_telling else "superseded"


def steps_ordered(file: File, event: e.StepsOrdered) -> File:
    version = file.versions[event.version]
    found = {name: made_key(event.original, step) for name, step in event.reused}
    version = replace(
        version,
        phase=moved_version(version.phase, "transforming"),
        original=event.original,
        outputs={**version.outputs, ORIGINAL: made_key(event.original, ORIGINAL), **found},
    )
    return with_orders(with_version(file, version), event, version, event.jobs)


def _ended(job: Job, event: e.AttemptEnded) -> Job:
    return replace(job, attempts=event.attempt, epoch=event.epoch, ended_ms=event.at_ms)


def original_stored(file: File, event: e.OriginalStored) -> File:
    job = _ended(file.jobs[event.job], event)
    file = with_job(file, replace(job, phase=moved_job(job.phase, "done"), error=""))
    key = made_key(event.artifact.sha256, ORIGINAL)
    made = file.made if key in file.made else {**file.made, key: (event.artifact,)}
    version = replace(file.versions[event.version], original=event.artifact.sha256)
    return with_version(replace(file, made=made), version)


def step_finished(file: File, event: e.StepFinished) -> File:
    job = _ended(file.jobs[event.job], event)
    file = with_job(file, replace(job, phase=moved_job(job.phase, "done"), error=""))
    version = file.versions[event.version]
    if job.id not in version.jobs:
        return _kept(file, event, version, job)
    if not event.artifacts:
        missing = {**version.missing, job.name: event.reason}
        return with_version(file, replace(version, missing=missing))
    key = made_key(version.original, job.step)
    version = replace(version, outputs={**version.outputs, job.name: key})
    return _kept(with_version(file, version), event, version, job)


def _kept(file: File, event: e.StepFinished, version: Version, job: Job) -> File:
    key = made_key(version.original, job.step)
    if not event.artifacts or key in file.made:
        return file
    return replace(file, made={**file.made, key: event.artifacts})


def job_deferred(file: File, event: e.JobDeferred) -> File:
    job = _ended(file.jobs[event.job], event)
    job = replace(
        job,
        phase=moved_job(job.phase, "waiting"),
        due_ms=event.due_ms,
        losses=job.losses + event.lost,
        ended_ms=0,
        error=event.reason,
    )
    file = with_job(file, job)
    version = file.versions[event.version]
    if job.kind == "download" and version.phase == "received":
        file = with_version(file, replace(version, phase="downloading"))
    return file


def job_died(file: File, event: e.JobDied) -> File:
    job = _ended(file.jobs[event.job], event)
    job = replace(
        job,
        phase=moved_job(job.phase, "dead"),
        losses=job.losses + event.lost,
        error=event.reason,
    )
    file = with_job(file, job)
    version = file.versions[event.version]
    if job.required or job.id not in version.jobs:
        return file
    missing = {**version.missing, job.name: event.reason}
    return with_version(file, replace(version, missing=missing))


def job_stopped(file: File, event: e.JobStopped) -> File:
    job = _ended(file.jobs[event.job], event)
    file = with_job(file, replace(job, phase=moved_job(job.phase, "cancelled")))
    return _given_up(file, job) if job.asked else file


def job_retried(file: File, event: e.JobRetried) -> File:
    job = file.jobs[event.job]
    job = replace(
        job,
        phase=moved_job(job.phase, "ready"),
        attempts=0,
        losses=0,
        asked=False,
        ordered_ms=event.at_ms,
        due_ms=event.at_ms,
        ended_ms=0,
        error="",
    )
    file = with_job(file, job)
    version = file.versions[event.version]
    phase: VersionPhase = "downloading" if job.kind == "download" else "transforming"
    missing = {name: why for name, why in version.missing.items() if name != job.name}
    version = replace(
        version, phase=moved_version(version.phase, phase), missing=missing, step="", error=""
    )
    return with_version(file, version)


def job_cancelled(file: File, event: e.JobCancelled) -> File:
    job = file.jobs[event.job]
    if event.asked:
        return with_job(file, replace(job, asked=True))
    return _given_up(_with_job_phase(file, job.id, "cancelled", event.at_ms), job)


def job_discarded(file: File, event: e.JobDiscarded) -> File:
    job = file.jobs[event.job]
    return _given_up(_with_job_phase(file, job.id, "discarded", event.at_ms), job)


def _given_up(file: File, job: Job) -> File:
    """An operator gave this work up: its version ends, unless something else ended it."""
    version = file.versions[job.version]
    is_ours = job.id in version.jobs and version.phase in {*WORKING, "failed"}
    if not is_ours or not job.required:
        return file
    return with_version(file, replace(version, phase=moved_version(version.phase, "discarded")))


def _with_job_phase(file: File, job_id: str, phase: Any, at_ms: int) -> File:
    job = file.jobs[job_id]
    return with_job(file, replace(job, phase=moved_job(job.phase, phase), ended_ms=at_ms))

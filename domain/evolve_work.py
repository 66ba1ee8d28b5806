"""What runs and jobs make of a file."""

from __future__ import annotations

from domain import events as e
from domain.events import JobOrder
from domain.states import (
    ORIGINAL,
    WORKING,
    File,
    Job,
    Version,
    changed,
    is_left,
    made_key,
    with_job,
    with_message,
    with_version,
)
from domain.work import JobPhase, VersionPhase, moved_job, moved_message, moved_version


def with_orders(file: File, event: e.Event, version: Version, orders: tuple[JobOrder, ...]) -> File:
    jobs = {order.id: _ordered(file, event, version, order) for order in orders}
    known = tuple(job for job in version.jobs if job not in jobs)
    version = changed(version, jobs=(*known, *jobs))
    return with_version(changed(file, jobs={**file.jobs, **jobs}), version)


def _ordered(file: File, event: e.Event, version: Version, order: JobOrder) -> Job:
    """A fresh job; one that existed before keeps its epoch, and goes on if it is open."""
    known = file.jobs.get(order.id)
    if known and known.is_open:
        return changed(known, asked=False, run=version.run, recipe=version.recipe)
    return Job(
        id=order.id,
        kind=order.kind,
        name=order.name,
        version=version.version,
        phase=moved_job(known.phase, "ready") if known else "ready",
        ordered_ms=event.at_ms,
        due_ms=event.at_ms,
        step=order.step,
        input=version.original if order.kind == "transform" else "",
        required=order.required,
        epoch=known.epoch if known else 0,
        run=version.run,
        recipe=version.recipe,
    )


def run_started(file: File, event: e.RunStarted) -> File:
    version = file.versions[event.version]
    version = changed(
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
    file = with_version(file, version)
    if not event.job:
        return file
    return with_orders(file, event, version, (JobOrder(event.job, "download", "download"),))


def work_recalled(file: File, event: e.WorkRecalled) -> File:
    for job_id in event.jobs:
        file = _with_job_phase(file, job_id, "cancelled", event.at_ms)
    for job_id in event.asked:
        file = with_job(file, changed(file.jobs[job_id], asked=True))
    for message_id in event.messages:
        message = file.messages[message_id]
        phase = moved_message(message.phase, "skipped")
        file = with_message(
            file, changed(message, phase=phase, ended_ms=event.at_ms, error=event.reason)
        )
    version = file.versions.get(event.version)
    if version and event.reason == "superseded" and is_left(file, version):
        superseded = moved_version(version.phase, "superseded")
        return with_version(file, changed(version, phase=superseded))
    return file


def steps_ordered(file: File, event: e.StepsOrdered) -> File:
    version = file.versions[event.version]
    found = {name: made_key(event.original, step) for name, step in event.reused}
    version = changed(
        version,
        phase=moved_version(version.phase, "transforming"),
        original=event.original,
        outputs={**version.outputs, ORIGINAL: made_key(event.original, ORIGINAL), **found},
    )
    return with_orders(with_version(file, version), event, version, event.jobs)


def _ended(job: Job, event: e.AttemptEnded) -> Job:
    return changed(job, attempts=event.attempt, epoch=event.epoch, ended_ms=event.at_ms)


def original_stored(file: File, event: e.OriginalStored) -> File:
    job = _ended(file.jobs[event.job], event)
    file = with_job(file, changed(job, phase=moved_job(job.phase, "done"), error=""))
    key = made_key(event.artifact.sha256, ORIGINAL)
    made = file.made if key in file.made else {**file.made, key: (event.artifact,)}
    version = changed(file.versions[event.version], original=event.artifact.sha256)
    return with_version(changed(file, made=made), version)


def step_finished(file: File, event: e.StepFinished) -> File:
    job = _ended(file.jobs[event.job], event)
    file = with_job(file, changed(job, phase=moved_job(job.phase, "done"), error=""))
    key = made_key(job.input, job.step)
    if event.artifacts and key not in file.made:
        file = changed(file, made={**file.made, key: event.artifacts})
    version = file.versions[event.version]
    if job.id not in version.jobs:
        return file
    if event.artifacts:
        version = changed(version, outputs={**version.outputs, job.name: key})
    else:
        version = changed(version, missing={**version.missing, job.name: event.reason})
    return _given_up(with_version(file, version), job)


def job_deferred(file: File, event: e.JobDeferred) -> File:
    job = _ended(file.jobs[event.job], event)
    job = changed(
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
        phase = moved_version(version.phase, "downloading")
        file = with_version(file, changed(version, phase=phase))
    return file


def job_died(file: File, event: e.JobDied) -> File:
    job = _ended(file.jobs[event.job], event)
    job = changed(
        job,
        phase=moved_job(job.phase, "dead"),
        losses=job.losses + event.lost,
        error=event.reason,
    )
    return _given_up(_missing(with_job(file, job), job, event.reason), job)


def job_stopped(file: File, event: e.JobStopped) -> File:
    job = _ended(file.jobs[event.job], event)
    job = changed(job, phase=moved_job(job.phase, "cancelled"), asked=False)
    return _given_up(_missing(with_job(file, job), job, "cancelled"), job)


def job_retried(file: File, event: e.JobRetried) -> File:
    job = file.jobs[event.job]
    job = changed(
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
    version = changed(
        version, phase=moved_version(version.phase, phase), missing=missing, step="", error=""
    )
    return with_version(file, version)


def job_cancelled(file: File, event: e.JobCancelled) -> File:
    job = file.jobs[event.job]
    if event.asked:
        return with_job(file, changed(job, asked=True))
    file = _with_job_phase(file, job.id, "cancelled", event.at_ms)
    return _given_up(_missing(file, job, "cancelled"), job)


def job_discarded(file: File, event: e.JobDiscarded) -> File:
    return _given_up(
        _with_job_phase(file, event.job, "discarded", event.at_ms), file.jobs[event.job]
    )


def _missing(file: File, job: Job, reason: str) -> File:
    """A step that the recipe can do without has no result, for this reason."""
    version = file.versions[job.version]
    if job.required or job.id not in version.jobs:
        return file
    return with_version(file, changed(version, missing={**version.missing, job.name: reason}))


def _given_up(file: File, job: Job) -> File:
    """Discard the version once its work has ended, if an operator gave up what it needs.

    A dead job that is left keeps the version failed: it can still be retried.
    """
    version = file.versions[job.version]
    if job.id not in version.jobs or version.phase not in {*WORKING - {"notifying"}, "failed"}:
        return file
    needed = [file.jobs[j] for j in version.jobs if file.jobs[j].required]
    if any(file.jobs[j].is_open for j in version.jobs):
        return file
    dead = next((j for j in needed if j.phase == "dead"), None)
    if dead is not None:
        is_failed = version.phase == "failed"
        version = changed(version, step=dead.name, error=dead.error) if is_failed else version
        return with_version(file, version)
    if all(j.phase == "done" for j in needed):
        return file
    phase = moved_version(version.phase, "discarded")
    return with_version(file, changed(version, phase=phase, step="", error=""))


def _with_job_phase(file: File, job_id: str, phase: JobPhase, at_ms: int) -> File:
    job = file.jobs[job_id]
    return with_job(file, changed(job, phase=moved_job(job.phase, phase), ended_ms=at_ms))

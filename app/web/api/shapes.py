"""Files, versions, jobs and messages as the API shows them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
from msgspec import Struct

from app.store.reading.files import Attempt, Found, Progress
from app.store.reading.work import Work
from app.web.api.attempts import AttemptOut, attempt_out
from app.web.api.office import at
from domain.events import Artifact
from domain.order import Fact
from domain.recipes import Recipe
from domain.states import File, Job, Message, Version, current_result
from domain.summary import version_state

_OPEN_JOB = {"ready", "waiting"}
_OPEN_MESSAGE = {"pending", "waiting", "unclear"}


class ProgressOut(Struct):
    """How far running work is: ``total`` is unknown for some."""

    done: int
    total: int | None
    since: str | None


class ArtifactOut(Struct):
    """A result: its bytes are at ``url``."""

    id: str
    name: str
    sha256: str
    size: int
    media_type: str
    url: str
    note: str = ""


class JobOut(Struct):
    """One piece of work."""

    id: str
    file: str
    source: str
    version: str
    kind: str
    name: str
    state: str
    run: int
    required: bool
    attempts: list[AttemptOut]
    attempts_counted: int
    progress: ProgressOut | None
    error: str
    ordered_at: str | None
    due_at: str | None
    ended_at: str | None


class MessageOut(Struct):
    """One notification; ``body`` is what is sent, as text, while it is kept."""

    id: str
    file: str
    source: str
    destination: str
    type: str
    version: str
    state: str
    sequence: int
    reference: str
    attempts: list[AttemptOut]
    attempts_counted: int
    error: str
    ordered_at: str | None
    due_at: str | None
    ended_at: str | None
    body: str | None = None


class VersionOut(Struct):
    """One content of a file. ``order`` counts from the oldest known, which is 1."""

    version: str
    order: int
    state: str
    recipe: str
    run: int
    error: str
    step: str
    name: str
    size: int | None
    sha256: str
    media_type: str
    occurred_at: str | None
    reported_at: str | None
    completed_at: str | None
    missing: dict[str, str]
    jobs: list[JobOut] = []
    artifacts: list[ArtifactOut] = []
    messages: list[MessageOut] = []


class FactOut(Struct):
    """What the source told of the file, in the order in which it came."""

    kind: str
    version: str
    name: str
    sequence: int | None
    occurred_at: str | None
    event: str


class FileOut(Struct):
    """A file: ``current`` is the version that counts, ``result`` the one whose result is shown."""

    id: str
    source: str
    file_id: str
    name: str
    project: str
    state: str
    current: str | None
    result: str | None
    is_ordered: bool
    held: bool
    erased: bool
    generation: int
    opened_at: str | None
    changed_at: str | None
    versions: list[VersionOut]
    messages: list[MessageOut] = []
    facts: list[FactOut] = []


class Details(Struct):
    """What a file is shown with, beside its state."""

    recipes: dict[str, Recipe]
    attempts: dict[str, list[Attempt]] = {}
    is_whole: bool = False


def file_out(found: Found, details: Details) -> FileOut:
    """A file, whole or as one line of a list."""
    file = found.file
    seen = file.view
    ranking = file.ranking
    versions = [_version(found, v, ranking, details) for v in file.versions.values()]
    versions.sort(key=_by_order)
    loose = [m for m in file.messages.values() if m.version not in file.versions]
    return FileOut(
        id=found.id,
        source=file.source,
        file_id=file.file_id,
        name=seen.name,
        project=file.project,
        state=_overlaid(found.state, found.running.values()),
        current=seen.current or None,
        result=result_of(file),
        is_ordered=seen.is_ordered,
        held=file.held,
        erased=file.erased,
        generation=file.generation,
        opened_at=at(file.opened_ms),
        changed_at=at(file.changed_ms),
        versions=versions,
        messages=[_message(found, m, details) for m in loose] if details.is_whole else [],
        facts=[_fact(fact) for fact in file.facts] if details.is_whole else [],
    )


def result_of(file: File) -> str | None:
    """The version whose result is shown as current, if there is one."""
    return current_result(file) or None


def _by_order(version: VersionOut) -> int:
    return -version.order


def _overlaid(state: str, running: Any) -> str:
    # The file's row knows nothing of leases: a download that runs lies over it.
    is_downloading = state == "received" and any(p.kind == "download" for p in running)
    return "downloading" if is_downloading else state


def _version(
    found: Found, version: Version, ranking: Sequence[str], details: Details
) -> VersionOut:
    file = found.file
    recipe = details.recipes.get(version.recipe)
    mine = [p for w, p in found.running.items() if w in version.jobs]
    out = VersionOut(
        version=version.version,
        order=ranking.index(version.version) + 1 if version.version in ranking else 0,
        state=_overlaid(version_state(file, version), mine),
        recipe=recipe.name if recipe else "",
        run=version.run,
        error=version.error,
        step=version.step,
        name=version.name,
        size=version.size_bytes,
        sha256=version.sha256,
        media_type=version.media_type,
        occurred_at=at(version.occurred_us // 1000) if version.occurred_us else None,
        reported_at=at(version.reported_ms),
        completed_at=at(version.completed_ms),
        missing=dict(version.missing),
    )
    if not details.is_whole:
        return out
    return msgspec.structs.replace(
        out,
        jobs=[_job(found, j, details) for j in file.jobs.values() if j.version == version.version],
        artifacts=[artifact_out(a) for a in artifacts_of(file, version)],
        messages=[
            _message(found, m, details)
            for m in file.messages.values()
            if m.version == version.version
        ],
    )


def artifacts_of(file: File, version: Version) -> list[Artifact]:
    """The artifacts of a version's present run, else those of its last complete one."""
    outputs = version.outputs or version.result
    return [artifact for key in outputs.values() for artifact in file.made.get(key, ())]


def artifact_out(artifact: Artifact) -> ArtifactOut:
    """A result, with where its bytes are."""
    return ArtifactOut(
        id=artifact.id,
        name=artifact.name,
        sha256=artifact.sha256,
        size=artifact.size_bytes,
        media_type=artifact.media_type,
        url=f"/api/v1/artifacts/{artifact.id}",
        note=artifact.note,
    )


def _job(found: Found, job: Job, details: Details) -> JobOut:
    running = found.running.get(job.id)
    is_running = running is not None and job.phase in _OPEN_JOB
    return JobOut(
        id=job.id,
        file=found.id,
        source=found.file.source,
        version=job.version,
        kind=job.kind,
        name=job.name,
        state="running" if is_running else job.phase,
        run=job.run,
        required=job.required,
        attempts=[attempt_out(a) for a in details.attempts.get(job.id, [])],
        attempts_counted=job.attempts,
        progress=_progress(running) if running and is_running else None,
        error=job.error,
        ordered_at=at(job.ordered_ms),
        due_at=at(job.due_ms) if job.phase in _OPEN_JOB else None,
        ended_at=at(job.ended_ms),
    )


def _message(found: Found, message: Message, details: Details) -> MessageOut:
    is_sent = message.id in found.running and message.phase in _OPEN_MESSAGE
    return MessageOut(
        id=message.id,
        file=found.id,
        source=found.file.source,
        destination=message.destination,
        type=message.type,
        version=message.version,
        state="sending" if is_sent else message.phase,
        sequence=message.sequence,
        reference=message.reference,
        attempts=[attempt_out(a) for a in details.attempts.get(message.id, [])],
        attempts_counted=message.attempts,
        error=message.error,
        ordered_at=at(message.ordered_ms),
        due_at=at(message.due_ms) if message.phase in _OPEN_MESSAGE else None,
        ended_at=at(message.ended_ms),
    )


def job_row_out(row: Work, attempts: Mapping[str, list[Attempt]]) -> JobOut:
    """A job from its row."""
    progress = ProgressOut(row.done, row.total, None) if row.is_running else None
    is_open = row.is_running or row.state in _OPEN_JOB
    return JobOut(
        id=row.id,
        file=row.stream,
        source=row.source,
        version=row.version,
        kind=row.kind,
        name=row.name,
        state=row.state,
        run=row.run,
        required=row.required,
        attempts=[attempt_out(a) for a in attempts.get(row.id, [])],
        attempts_counted=row.attempts,
        progress=progress,
        error=row.error,
        ordered_at=at(row.ordered_ms),
        due_at=at(row.due_ms) if is_open else None,
        ended_at=at(row.ended_ms),
    )


def message_row_out(row: Work, attempts: Mapping[str, list[Attempt]]) -> MessageOut:
    """A message from its row."""
    is_open = row.is_running or row.state in _OPEN_MESSAGE
    return MessageOut(
        id=row.id,
        file=row.stream,
        source=row.source,
        destination=row.name,
        type=row.type,
        version=row.version,
        state=row.state,
        sequence=row.sequence,
        reference=row.reference,
        attempts=[attempt_out(a) for a in attempts.get(row.id, [])],
        attempts_counted=row.attempts,
        error=row.error,
        ordered_at=at(row.ordered_ms),
        due_at=at(row.due_ms) if is_open else None,
        ended_at=at(row.ended_ms),
    )


def _progress(running: Progress) -> ProgressOut:
    return ProgressOut(running.done, running.total, at(running.since_ms))


def _fact(fact: Fact) -> FactOut:
    return FactOut(
        kind=fact.kind,
        version=fact.version,
        name=fact.name,
        sequence=fact.sequence,
        occurred_at=at(fact.at_us // 1000) if fact.at_us else None,
        event=fact.event,
    )

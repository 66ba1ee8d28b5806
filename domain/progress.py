"""From one step of a version's work to the next, until it is completed or has failed."""

from __future__ import annotations

from domain import events as e
from domain.draft import Draft
from domain.ids import derive
from domain.order import View
from domain.recipes import Recipe, Step
from domain.states import ORIGINAL, WORKING, Job, Version, made_key
from domain.telling import Notice


def start_run(draft: Draft, version: Version, *, reason: e.RunReason, recipe: str = "") -> None:
    """Begin work on a known version, with the bytes that are there or a download.

    A download of it that is still under way is taken over: the bytes are the same.
    """
    pinned = recipe or version.recipe
    run = version.run + (reason == "reprocessed")
    original = version.original or version.sha256
    is_there = made_key(original, ORIGINAL) in draft.file.made
    again = pinned if run > 1 else ""
    job = "" if is_there else _open_download(draft, version)
    if not is_there and not job:
        job = download_id(draft, version.version, draft.file.view, again)
    draft.add(
        e.RunStarted(
            at_ms=draft.now_ms,
            version=version.version,
            run=run,
            recipe=pinned,
            reason=reason,
            job=job,
        )
    )


def _open_download(draft: Draft, version: Version) -> str:
    jobs = (j for j in draft.file.jobs.values() if j.version == version.version)
    return next((j.id for j in jobs if j.kind == "download" and j.is_open), "")


def advance(draft: Draft, name: str) -> None:
    """Order what comes next for this version, until there is nothing to order now."""
    version = draft.file.versions[name]
    recipe = draft.context.recipes.get(version.recipe)
    if recipe is None or version.phase not in WORKING:
        return
    if version.phase in {"received", "downloading"}:
        _order_steps(draft, version, recipe)
        version = draft.file.versions[name]
    if version.phase == "transforming":
        _conclude(draft, version, recipe)


def _order_steps(draft: Draft, version: Version, recipe: Recipe) -> None:
    original = version.original or version.sha256
    if made_key(original, ORIGINAL) not in draft.file.made:
        return
    made = draft.file.made
    reused = tuple((s.name, s.digest) for s in recipe.steps if made_key(original, s.digest) in made)
    names = {name for name, _ in reused}
    orders = tuple(
        e.JobOrder(
            id=_step_id(draft, version, step),
            kind="transform",
            name=step.name,
            step=step.digest,
            required=step.required,
        )
        for step in recipe.steps
        if step.name not in names
    )
    draft.add(
        e.StepsOrdered(
            at_ms=draft.now_ms,
            version=version.version,
            original=original,
            jobs=orders,
            reused=reused,
        )
    )


def _conclude(draft: Draft, version: Version, recipe: Recipe) -> None:
    """Complete or fail the version once every step of its run has ended."""
    jobs = [draft.file.jobs[j] for j in version.jobs if j in draft.file.jobs]
    if any(job.is_open for job in jobs):
        return
    lacking = [s for s in recipe.steps if s.name not in {*version.outputs, *version.missing}]
    dead = next((j for j in jobs if j.phase == "dead" and j.required), None)
    if dead is not None:
        fail(draft, version, dead)
    elif not lacking:
        sequence, orders = draft.tell(Notice("file.version.completed", version))
        draft.add(
            e.VersionCompleted(
                at_ms=draft.now_ms,
                version=version.version,
                sequence=sequence,
                messages=orders,
            )
        )


def fail(draft: Draft, version: Version, job: Job) -> None:
    """Fail the version for this dead job, and tell those who want to know."""
    error = {"error": {"step": job.name, "reason": job.error}}
    sequence, orders = draft.tell(Notice("file.version.failed", version, error))
    draft.add(
        e.VersionFailed(
            at_ms=draft.now_ms,
            version=version.version,
            sequence=sequence,
            messages=orders,
            step=job.name,
            reason=job.error,
        )
    )


def download_id(draft: Draft, version: str, seen: View, reprocessed: str = "") -> str:
    """The id of a version's download, as the file's facts and an operator's order have it."""
    return _job_id(draft, version, "download", seen.reopened, reprocessed)


def _step_id(draft: Draft, version: Version, step: Step) -> str:
    original = version.original or version.sha256
    again = (draft.file.view.reopened, version.recipe if version.run > 1 else "")
    parts = (version.version, "transform", step.name, step.digest, original, *again)
    return _job_id(draft, *parts)


def _job_id(draft: Draft, *parts: str) -> str:
    """A job's id by what it is about. What is done is never done again under the same id."""
    job = derive(draft.context.key, "job", draft.stream, *parts)
    while job in draft.file.jobs and draft.file.jobs[job].phase == "done":
        job = derive(draft.context.key, "job", draft.stream, *parts, job)
    return job

"""From one step of a version's work to the next, until it is completed or has failed."""

from __future__ import annotations

from domain import events as e
from domain.draft import Draft
from domain.ids import derive
from domain.order import View
from domain.recipes import Recipe
from domain.states import ORIGINAL, WORKING, Job, Version, made_key
from domain.telling import Notice


def start_run(draft: Draft, version: Version, *, reason: e.RunReason, recipe: str = "") -> None:
    """Begin work on a known version, with the bytes that are there or a new download."""
    pinned = recipe or version.recipe
    if not pinned:
        return
    run = version.run + (reason == "reprocessed")
    original = version.original or version.sha256
    is_there = made_key(original, ORIGINAL) in draft.file.made
    seen = draft.file.view
    again = pinned if run > 1 else ""
    job = "" if is_there else download_id(draft, version.version, seen, again)
    is_busy = job in draft.file.jobs and draft.file.jobs[job].is_open
    draft.add(
        e.RunStarted(
            at_ms=draft.now_ms,
            version=version.version,
            run=run,
            recipe=pinned,
            reason=reason,
            job="" if is_busy else job,
        )
    )


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
            id=_step_id(draft, version, step.name, step.digest),
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
    parts = (version, "download", seen.reopened, reprocessed)
    return derive(draft.context.key, "job", draft.stream, *parts)


def _step_id(draft: Draft, version: Version, name: str, digest: str) -> str:
    again = (draft.file.view.reopened, version.recipe if version.run > 1 else "")
    return derive(
        draft.context.key, "job", draft.stream, version.version, "transform", name, digest, *again
    )

"""What follows from a changed view: work is recalled or taken up, receivers are told."""

from __future__ import annotations

from typing import assert_never

from domain import events as e
from domain.draft import Draft
from domain.order import View
from domain.progress import advance, start_run
from domain.recipes import Candidate, choose
from domain.states import WORKING, Version, meaning_of
from domain.telling import Notice, holds_true


def follow(draft: Draft, before: View) -> None:
    """Bring the work in line with what is true of the file now."""
    now = draft.file.view
    recall_unwanted(draft, now)
    if before.is_present and not now.is_present:
        _tell_of_file(draft, Notice("file.deleted"))
    if before.name and now.name != before.name and now.is_present:
        last = draft.file.facts[-1].event
        details = {"previous_name": before.name, "name": now.name, "fact": last}
        _tell_of_file(draft, Notice("file.renamed", details=details))
    if now.current:
        has_changed = before.current != now.current
        _take_up(draft, draft.file.versions[now.current], has_changed=has_changed)
        advance(draft, now.current)


def recall_unwanted(draft: Draft, now: View) -> None:
    """Call back the open work of versions that nobody wants any more."""
    for version in tuple(draft.file.versions.values()):
        if not is_wanted(draft, version, now):
            recall(draft, version, "superseded" if now.is_present else "deleted")
    if now.is_present:
        _recall_deletions(draft)


def is_wanted(draft: Draft, version: Version, now: View) -> bool:
    """Whether work on this version is to go on."""
    recipe = draft.context.recipes.get(version.recipe)
    if recipe is None or not now.is_present:
        return False
    return version.version == now.current or recipe.versions == "all"


def recall(draft: Draft, version: Version, reason: e.RecallReason, *, done: str = "") -> None:
    """Call back what is open and not under a lease; ask what runs to stop if the file is gone.

    ``done`` is the work whose lease ends with this very command.
    """
    flying = draft.context.in_flight - {done}
    jobs = [j for j in draft.file.jobs.values() if j.version == version.version and j.is_open]
    idle = tuple(j.id for j in jobs if j.id not in flying)
    is_final = reason in {"deleted", "erased"}
    asked = tuple(j.id for j in jobs if j.id in flying and not j.asked) if is_final else ()
    messages = tuple(
        m.id
        for m in draft.file.messages.values()
        if m.version == version.version
        and m.is_open
        and m.id not in flying
        and (is_final or _skips(draft, m.destination))
    )
    if idle or asked or messages or (version.phase in WORKING and not is_final):
        draft.add(
            e.WorkRecalled(
                at_ms=draft.now_ms,
                version=version.version,
                reason=reason,
                jobs=idle,
                messages=messages,
                asked=asked,
            )
        )


def _skips(draft: Draft, destination: str) -> bool:
    known = draft.context.destinations.get(destination)
    return known is None or known.superseded == "skip"


def _recall_deletions(draft: Draft) -> None:
    """A deletion that is true no more is not told to those who have not heard of it."""
    messages = tuple(
        m.id
        for m in draft.file.messages.values()
        if m.type == "file.deleted" and m.is_open and m.id not in draft.context.in_flight
    )
    if messages:
        draft.add(
            e.WorkRecalled(at_ms=draft.now_ms, version="", reason="superseded", messages=messages)
        )


def _tell_of_file(draft: Draft, notice: Notice) -> None:
    sequence, orders = draft.tell(notice)
    if orders:
        draft.add(
            e.FileTold(at_ms=draft.now_ms, type=notice.type, sequence=sequence, messages=orders)
        )


def _take_up(draft: Draft, version: Version, *, has_changed: bool) -> None:
    """Start work on the current version where it lies idle though it should not."""
    match version.phase:
        case "deleted":
            start_run(draft, version, reason="restored")
        case "superseded":
            start_run(draft, version, reason="reopened")
        case "ignored":
            _match_again(draft, version)
        case "completed" | "failed":
            if has_changed and _is_contradicted(draft, version):
                start_run(draft, version, reason="reopened")
        case "received" | "downloading" | "transforming" | "notifying" | "discarded":
            return
        case _:
            assert_never(version.phase)


def _is_contradicted(draft: Draft, version: Version) -> bool:
    """Whether a receiver holds true what is not so now that this version is current again."""
    outcome: e.MessageType = (
        "file.version.completed" if version.phase == "completed" else "file.version.failed"
    )
    recipe = draft.context.recipes.get(version.recipe)
    names = recipe.notify if recipe else ()
    beliefs = {holds_true(draft.file, name) for name in names}
    return bool(beliefs - {meaning_of(outcome, version), ""})


def _match_again(draft: Draft, version: Version) -> None:
    """A file that no recipe wanted may be wanted under its new name."""
    file = draft.file
    if file.view.name == version.name:
        return
    candidate = Candidate(
        source=file.source,
        type=version.type,
        name=file.view.name,
        project=file.project,
        media_type=version.media_type,
        size_bytes=version.size_bytes,
    )
    recipe = choose(draft.context.configured, candidate)
    if recipe is not None:
        start_run(draft, version, reason="matched", recipe=recipe.digest)

"""What follows from a changed view: work is recalled or taken up, receivers are told."""

from __future__ import annotations

from typing import assert_never

from domain import events as e
from domain.draft import Draft
from domain.order import View
from domain.progress import advance, start_run
from domain.recipes import Candidate, choose
from domain.states import Version, is_left
from domain.telling import Notice, listeners, name_told


def follow(draft: Draft, before: View) -> None:
    """Bring the work in line with what is true of the file now."""
    now = draft.file.view
    recall_unwanted(draft, now)
    if before.is_present and not now.is_present:
        _tell_of_file(draft, Notice("file.deleted"))
    if not now.is_present:
        return
    tell_name(draft)
    for name in draft.file.ranking:
        is_news = name == now.current != before.current
        _take_up(draft, draft.file.versions[name], now, is_news=is_news)
        advance(draft, name)


def tell_name(draft: Draft) -> None:
    """Tell the file's name to those who have another one for it."""
    now = draft.file.view
    if not now.is_present:
        return
    for destination in dict.fromkeys(m.destination for m in draft.file.messages.values()):
        previous = name_told(draft.file, destination)
        if previous not in {"", now.name}:
            details = {"previous_name": previous}
            _tell_of_file(draft, Notice("file.renamed", details=details, only=destination))


def recall_unwanted(draft: Draft, now: View) -> None:
    """Call back the open work of versions that nobody wants any more."""
    for version in tuple(draft.file.versions.values()):
        if not is_wanted(draft, version, now):
            recall(draft, version, "superseded" if now.is_present else "deleted")
    if now.is_present:
        recall_of_file(draft, "superseded")


def is_wanted(draft: Draft, version: Version, now: View) -> bool:
    """Whether work on this version is to go on."""
    recipe = draft.context.recipes.get(version.recipe)
    if recipe is None or version.erased or not now.is_present:
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
    is_over = reason == "superseded" and is_left(draft.file, version)
    if idle or asked or messages or is_over:
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


def recall_of_file(draft: Draft, reason: e.RecallReason, *, done: str = "") -> None:
    """Call back what is to be told of the file itself: a deletion that is true no more, or all."""
    flying = draft.context.in_flight - {done}
    messages = tuple(
        m.id
        for m in draft.file.messages.values()
        if not m.version
        and m.is_open
        and m.id not in flying
        and (m.type == "file.deleted" or (reason == "erased" and m.type != "file.erased"))
    )
    if messages:
        draft.add(e.WorkRecalled(at_ms=draft.now_ms, version="", reason=reason, messages=messages))


def _skips(draft: Draft, destination: str) -> bool:
    known = draft.context.destinations.get(destination)
    return known is None or known.superseded == "skip"


def _tell_of_file(draft: Draft, notice: Notice) -> None:
    sequence, orders = draft.tell(notice)
    if orders:
        draft.add(
            e.FileTold(at_ms=draft.now_ms, type=notice.type, sequence=sequence, messages=orders)
        )


def _take_up(draft: Draft, version: Version, now: View, *, is_news: bool) -> None:
    """Start work on a wanted version where it lies idle though it should not.

    ``is_news`` says that it has just become the current one.
    """
    if version.phase == "ignored" and version.version == now.current:
        _match_again(draft, version)
    if not is_wanted(draft, version, now):
        return
    match version.phase:
        case "deleted":
            start_run(draft, version, reason="restored")
        case "superseded":
            start_run(draft, version, reason="reopened")
        case "completed" | "notifying" | "failed":
            if is_news and _is_to_be_told(draft, version):
                start_run(draft, version, reason="reopened")
        case "received" | "downloading" | "transforming" | "ignored" | "discarded":
            return
        case _:
            assert_never(version.phase)


def _is_to_be_told(draft: Draft, version: Version) -> bool:
    """Whether a receiver holds true something else, now that this version is current again."""
    has_failed = version.phase == "failed"
    notice = Notice("file.version.failed" if has_failed else "file.version.completed", version)
    return bool(listeners(draft.file, notice, draft.context))


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

"""What sources tell, decided: new, joined, stale or ignored; deleted, restored, renamed."""

from __future__ import annotations

from typing import Any

from domain import commands as c
from domain import events as e
from domain.consequences import follow
from domain.draft import Draft
from domain.order import Fact, View, view
from domain.progress import download_id
from domain.recipes import Candidate, Recipe, choose
from domain.states import ORIGINAL, File, made_key


def report_version(draft: Draft, command: c.ReportVersion) -> None:
    """A content was announced: it is new, joins a known one, is stale, or nobody wants it."""
    before = draft.file.view
    if command.version in draft.file.versions:
        draft.add(_reported(draft, command, verdict="joined"))
        follow(draft, before)
        return
    newest = _seen_with(draft.file, command)
    recipe = _matching(draft, command, newest.name)
    if recipe is None:
        draft.add(_reported(draft, command, verdict="ignored"))
        follow(draft, before)
        return
    is_wanted = newest.is_present and (
        newest.current == command.version or recipe.versions == "all"
    )
    verdict: e.Verdict = "new" if is_wanted else "stale"
    is_known = made_key(command.sha256, ORIGINAL) in draft.file.made
    job = "" if not is_wanted or is_known else download_id(draft, command.version, newest)
    draft.add(_reported(draft, command, verdict=verdict, recipe=recipe.digest, job=job))
    follow(draft, before)


def _seen_with(file: File, command: c.ReportVersion) -> View:
    """The view as it will be with this report."""
    fact = Fact(
        kind="version",
        event=command.event,
        arrival=len(file.facts) + 1,
        version=command.version,
        value=command.value,
        sequence=command.sequence,
        at_us=command.occurred_us,
        name=command.name,
    )
    return view((*file.facts, fact))


def _matching(draft: Draft, command: c.ReportVersion, name: str) -> Recipe | None:
    """The recipe for the name that was reported, else for the one that the file has by now.

    The report's own name comes first, so that a renaming told before it changes nothing.
    """
    names = dict.fromkeys((command.name, name))
    found = (
        choose(draft.context.configured, _candidate(command, n)) for n in names if n or not name
    )
    return next((recipe for recipe in found if recipe is not None), None)


def _candidate(command: c.ReportVersion, name: str) -> Candidate:
    return Candidate(
        source=command.source,
        type=command.type,
        name=name,
        project=command.project,
        media_type=command.media_type,
        size_bytes=command.size_bytes,
    )


def _reported(
    draft: Draft, command: c.ReportVersion, *, verdict: e.Verdict, recipe: str = "", job: str = ""
) -> e.VersionReported:
    return e.VersionReported(
        at_ms=draft.now_ms,
        source=command.source,
        event=command.event,
        sequence=command.sequence,
        occurred_us=command.occurred_us,
        event_id=command.event_id,
        file_id=command.file_id,
        project=command.project,
        version=command.version,
        verdict=verdict,
        value=command.value,
        size_bytes=command.size_bytes,
        sha256=command.sha256,
        media_type=command.media_type,
        type=command.type,
        recipe=recipe,
        job=job,
        name=command.name,
        url=command.url,
    )


def report_deletion(draft: Draft, command: c.ReportDeletion) -> None:
    """The file is gone at its source: its work is recalled, and those who know of it are told."""
    before = draft.file.view
    draft.add(e.FileDeleted(at_ms=draft.now_ms, **_fact_fields(command)))
    follow(draft, before)


def report_restoration(draft: Draft, command: c.ReportRestoration) -> None:
    """The file is back at its source: its current version is current again."""
    before = draft.file.view
    draft.add(e.FileRestored(at_ms=draft.now_ms, **_fact_fields(command)))
    follow(draft, before)


def report_rename(draft: Draft, command: c.ReportRename) -> None:
    """The file has another name: work goes on, later messages carry it."""
    before = draft.file.view
    draft.add(e.FileRenamed(at_ms=draft.now_ms, name=command.name, **_fact_fields(command)))
    follow(draft, before)


def report_ignored(draft: Draft, command: c.ReportIgnored) -> None:
    """Recorded, shown, and nothing else."""
    draft.add(e.EventIgnored(at_ms=draft.now_ms, type=command.type, **_fact_fields(command)))


def _fact_fields(command: c.FactCommand) -> dict[str, Any]:
    return {
        "source": command.source,
        "event": command.event,
        "sequence": command.sequence,
        "occurred_us": command.occurred_us,
        "event_id": command.event_id,
        "file_id": command.file_id,
        "project": command.project,
    }

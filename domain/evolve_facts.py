"""What a source's facts make of a file."""

from __future__ import annotations

from typing import Any

from domain import events as e
from domain.events import JobOrder
from domain.evolve_work import with_orders
from domain.order import Fact, FactKind
from domain.states import File, Version, changed, with_version
from domain.work import VersionPhase, moved_version


def _with_fact(file: File, event: e.SourceFact, kind: FactKind, **more: Any) -> File:
    fact = Fact(
        kind=kind,
        event=event.event,
        arrival=len(file.facts) + 1,
        sequence=event.sequence,
        at_us=event.occurred_us,
        **more,
    )
    name = fact.name
    is_news = bool(name) and (not file.names or file.names[-1] != name)
    return changed(
        _identified(file, event),
        facts=(*file.facts, fact),
        names=(*file.names, name) if is_news else file.names,
    )


def _identified(file: File, event: e.SourceFact) -> File:
    return changed(
        file,
        source=event.source,
        file_id=event.file_id or file.file_id,
        project=event.project or file.project,
        erased=False,
    )


def _settled(file: File) -> File:
    """Let the versions' phases follow the view: absent is deleted, back is what it was."""
    seen = file.view
    if not seen.is_present:
        gone = {
            name: changed(v, phase=moved_version(v.phase, "deleted"))
            for name, v in file.versions.items()
        }
        return changed(file, versions=gone)
    back = {
        name: changed(v, phase=moved_version(v.phase, _restored_phase(v, seen.current)))
        for name, v in file.versions.items()
        if v.phase == "deleted" and not v.erased
    }
    return changed(file, versions={**file.versions, **back}) if back else file


def _restored_phase(version: Version, current: str) -> VersionPhase:
    """The current version stays deleted until its new run starts."""
    if not version.recipe:
        return "ignored"
    if version.version == current:
        return "deleted"
    return "completed" if version.completed_ms else "superseded"


def version_reported(file: File, event: e.VersionReported) -> File:
    file = _with_fact(file, event, "version", version=event.version, value=event.value,
                      name=event.name)  # fmt: skip
    known = file.versions.get(event.version)
    version = _updated(known, event) if known else _new_version(event)
    file = with_version(file, version)
    if event.job:
        file = with_orders(file, event, version, (JobOrder(event.job, "download", "download"),))
    return _settled(file)


def _new_version(event: e.VersionReported) -> Version:
    phases: dict[str, VersionPhase] = {"ignored": "ignored", "stale": "superseded"}
    return Version(
        version=event.version,
        phase=phases.get(event.verdict, "received"),
        recipe=event.recipe,
        run=1,
        media_type=event.media_type,
        size_bytes=event.size_bytes,
        sha256=event.sha256,
        type=event.type,
        url=event.url,
        name=event.name,
        event_id=event.event_id,
        event=event.event,
        occurred_us=event.occurred_us,
        reported_ms=event.at_ms,
    )


def _updated(known: Version, event: e.VersionReported) -> Version:
    """A further report of a known version: only the fresher address is of use."""
    return changed(known, url=event.url or known.url)


def file_deleted(file: File, event: e.FileDeleted) -> File:
    return _settled(_with_fact(file, event, "deleted"))


def file_restored(file: File, event: e.FileRestored) -> File:
    return _settled(_with_fact(file, event, "restored"))


def file_renamed(file: File, event: e.FileRenamed) -> File:
    return _with_fact(file, event, "renamed", name=event.name)


def event_ignored(file: File, event: e.EventIgnored) -> File:
    return _identified(file, event)

"""A file and its versions in one word each, for those who look at them."""

from __future__ import annotations

from typing import Literal

from domain.states import File, Version, completion_messages
from domain.work import VersionPhase

VersionState = VersionPhase | Literal["waiting"]

_IN_WORK: frozenset[VersionPhase] = frozenset({"received", "downloading", "transforming"})


def version_state(file: File, version: Version) -> VersionState:
    """The version's state: ``waiting`` where nothing of it is due before some later time."""
    if version.phase in _IN_WORK:
        jobs = [file.jobs[j] for j in version.jobs if j in file.jobs and file.jobs[j].is_open]
        is_waiting = bool(jobs) and all(job.phase == "waiting" for job in jobs)
    elif version.phase == "notifying":
        messages = [m for m in completion_messages(file, version) if m.is_open]
        is_waiting = bool(messages) and all(m.phase != "pending" for m in messages)
    else:
        is_waiting = False
    return "waiting" if is_waiting else version.phase


def file_state(file: File) -> VersionState:
    """The state of the file's newest version; ``deleted`` where the file is gone."""
    seen = file.view
    if file.facts and not seen.is_present:
        return "deleted"
    newest = file.versions.get(seen.newest)
    return version_state(file, newest) if newest else "ignored"

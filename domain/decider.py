"""(state, command) -> events: every decision about a file, and the only place where one is made.

Pure: the time, the die, the salt, the configuration and what is under a lease come in with the
context. ``evolve`` and ``fold`` are the other half: (state, event) -> state.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from domain import commands as c
from domain.attempts import finish_job, finish_message
from domain.commands import AnyFileCommand, Context, Decision, Refusal
from domain.draft import Draft
from domain.evolution import evolve, fold
from domain.facts import (
    report_deletion,
    report_ignored,
    report_rename,
    report_restoration,
    report_version,
)
from domain.operators import (
    cancel_job,
    discard_job,
    erase_file,
    expire_content,
    hold_file,
    release_file,
    reprocess,
    resolve_message,
    retry_job,
)
from domain.states import File

DECIDERS: dict[type, Callable[[Draft, Any], Refusal | None]] = {
    c.ReportVersion: report_version,
    c.ReportDeletion: report_deletion,
    c.ReportRestoration: report_restoration,
    c.ReportRename: report_rename,
    c.ReportIgnored: report_ignored,
    c.FinishJob: finish_job,
    c.FinishMessage: finish_message,
    c.RetryJob: retry_job,
    c.CancelJob: cancel_job,
    c.DiscardJob: discard_job,
    c.ResolveMessage: resolve_message,
    c.Reprocess: reprocess,
    c.HoldFile: hold_file,
    c.ReleaseFile: release_file,
    c.EraseFile: erase_file,
    c.ExpireContent: expire_content,
}


def decide(file: File, command: AnyFileCommand, context: Context) -> Decision | Refusal:
    """What the command leads to: events and the bytes of messages, or why it was turned down.

    A command given twice adds nothing: the second is refused, or decides on no events. (Facts are
    told apart by their receipts before they come here.)
    """
    known = {fact.event for fact in file.facts}
    if isinstance(command, c.FactCommand) and command.event in known:
        return Decision(file)
    draft = Draft(command.stream, file, context)
    refusal = DECIDERS[type(command)](draft, command)
    return refusal if refusal is not None else draft.decision


def recallable(file: File, command: AnyFileCommand) -> frozenset[str]:
    """The open jobs and messages that the command may call back, if no lease is on them."""
    if isinstance(command, (c.ReportIgnored, c.HoldFile, c.ReleaseFile, c.ExpireContent)):
        return frozenset()
    jobs = {job.id for job in file.jobs.values() if job.is_open}
    return frozenset(jobs | {m.id for m in file.messages.values() if m.is_open})


__all__ = ["decide", "evolve", "fold", "recallable"]

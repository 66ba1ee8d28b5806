"""Jobs, messages and versions: their states, and which may follow which."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from domain.errors import IllegalTransitionError

JobKind = Literal["download", "transform"]
JobPhase = Literal["ready", "waiting", "done", "dead", "cancelled", "discarded"]
MessagePhase = Literal[
    "pending", "waiting", "unclear", "held", "delivered", "dead", "skipped", "discarded"
]
VersionPhase = Literal[
    "received",
    "downloading",
    "transforming",
    "notifying",
    "completed",
    "failed",
    "superseded",
    "ignored",
    "deleted",
    "discarded",
]

# `running` and `sending` are what a lease makes of `ready`/`waiting` and `pending`: they are
# operational, so the log does not know them.
OPEN_JOB: frozenset[JobPhase] = frozenset({"ready", "waiting"})
OPEN_MESSAGE: frozenset[MessagePhase] = frozenset({"pending", "waiting", "unclear", "held"})

JOB_MOVES: Mapping[JobPhase, frozenset[JobPhase]] = {
    "ready": frozenset({"ready", "waiting", "done", "dead", "cancelled"}),
    "waiting": frozenset({"ready", "waiting", "done", "dead", "cancelled", "discarded"}),
    "dead": frozenset({"ready", "discarded", "cancelled"}),
    "cancelled": frozenset({"ready"}),
    "discarded": frozenset({"ready"}),
    "done": frozenset(),
}

MESSAGE_MOVES: Mapping[MessagePhase, frozenset[MessagePhase]] = {
    "pending": frozenset(
        {"waiting", "unclear", "held", "delivered", "dead", "skipped", "discarded"}
    ),
    "waiting": frozenset(
        {"pending", "waiting", "unclear", "held", "delivered", "dead", "skipped", "discarded"}
    ),
    "unclear": frozenset(
        {"pending", "waiting", "unclear", "held", "delivered", "dead", "skipped", "discarded"}
    ),
    "held": frozenset({"pending", "delivered", "skipped", "discarded"}),
    "dead": frozenset({"pending", "discarded", "skipped"}),
    "delivered": frozenset({"pending"}),
    "skipped": frozenset({"pending"}),
    "discarded": frozenset({"pending"}),
}

_WORKING: frozenset[VersionPhase] = frozenset(
    {"received", "downloading", "transforming", "notifying"}
)
VERSION_MOVES: Mapping[VersionPhase, frozenset[VersionPhase]] = {
    "received": frozenset(
        {"downloading", "transforming", "failed", "superseded", "deleted", "received", "discarded"}
    ),
    "downloading": frozenset(
        {"downloading", "transforming", "failed", "superseded", "deleted", "received", "discarded"}
    ),
    "transforming": frozenset(
        {
            "transforming",
            "notifying",
            "completed",
            "failed",
            "superseded",
            "deleted",
            "received",
            "discarded",
        }
    ),
    "notifying": frozenset(
        {"completed", "failed", "superseded", "deleted", "received", "transforming", "discarded"}
    ),
    "completed": frozenset({"notifying", "deleted", "received", "transforming", "failed"}),
    "failed": _WORKING | {"completed", "superseded", "deleted", "discarded"},
    "superseded": _WORKING | {"deleted"},
    "ignored": frozenset({"received", "transforming", "superseded", "deleted"}),
    "deleted": _WORKING | {"superseded", "ignored", "completed"},
    "discarded": _WORKING | {"completed", "superseded", "deleted", "failed"},
}


def moved_job(current: JobPhase, to: JobPhase) -> JobPhase:
    """``to``, if a job may go there; raises ``IllegalTransitionError``: a defect of ours."""
    if to not in JOB_MOVES[current]:
        raise IllegalTransitionError("job", current, to)
    return to


def moved_message(current: MessagePhase, to: MessagePhase) -> MessagePhase:
    """``to``, if a message may go there; raises ``IllegalTransitionError``: a defect of ours."""
    if to not in MESSAGE_MOVES[current]:
        raise IllegalTransitionError("message", current, to)
    return to


def moved_version(current: VersionPhase, to: VersionPhase) -> VersionPhase:
    """``to``, if a version may go there; raises ``IllegalTransitionError``: a defect of ours."""
    if to != current and to not in VERSION_MOVES[current]:
        raise IllegalTransitionError("version", current, to)
    return to

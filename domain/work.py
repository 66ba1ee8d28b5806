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

# Each move is shown by a test, and none is listed that cannot happen. To wait again is a move.
JOB_MOVES: Mapping[JobPhase, frozenset[JobPhase]] = {
    "ready": frozenset({"waiting", "done", "dead", "cancelled"}),
    "waiting": frozenset({"ready", "waiting", "done", "dead", "cancelled"}),
    "done": frozenset(),
    "dead": frozenset({"ready", "discarded"}),
    "cancelled": frozenset({"ready"}),
    "discarded": frozenset({"ready"}),
}

_SENT: frozenset[MessagePhase] = frozenset(
    {"waiting", "unclear", "held", "delivered", "dead", "skipped", "discarded"}
)
MESSAGE_MOVES: Mapping[MessagePhase, frozenset[MessagePhase]] = {
    "pending": _SENT,
    "waiting": _SENT | {"pending"},
    "unclear": _SENT | {"pending"},
    "held": frozenset({"pending", "delivered", "skipped", "discarded"}),
    "delivered": frozenset({"pending"}),
    "dead": frozenset({"pending", "delivered", "discarded"}),
    "skipped": frozenset({"pending"}),
    "discarded": frozenset({"pending"}),
}

_OVERTAKEN: frozenset[VersionPhase] = frozenset({"superseded", "deleted"})
VERSION_MOVES: Mapping[VersionPhase, frozenset[VersionPhase]] = {
    "received": _OVERTAKEN | {"downloading", "transforming", "failed", "discarded"},
    "downloading": _OVERTAKEN | {"received", "transforming", "failed", "discarded"},
    "transforming": _OVERTAKEN | {"received", "notifying", "failed", "discarded"},
    "notifying": _OVERTAKEN | {"received", "transforming", "completed", "failed"},
    "completed": frozenset({"received", "transforming", "deleted"}),
    "failed": frozenset(
        {"received", "downloading", "transforming", "notifying", "discarded", "deleted"}
    ),
    "superseded": frozenset({"received", "deleted"}),
    "ignored": frozenset({"received", "deleted"}),
    "deleted": frozenset({"received", "completed", "superseded", "ignored"}),
    "discarded": frozenset({"received", "downloading", "transforming", "deleted"}),
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
    """``to``, if a version may go or stay there; raises ``IllegalTransitionError`` else."""
    if to != current and to not in VERSION_MOVES[current]:
        raise IllegalTransitionError("version", current, to)
    return to

"""Notify: one message, its exact bytes, to one destination; what came back is the record."""

from __future__ import annotations

from jobs.notify.ask import ask
from jobs.notify.configured import settings_of, target_of
from jobs.notify.send import notify
from jobs.notify.signing import signer
from jobs.notify.values import Attempt, Delivered, NotifyJob, NotifyOutcome, NotifySettings

__all__ = [
    "Attempt",
    "Delivered",
    "NotifyJob",
    "NotifyOutcome",
    "NotifySettings",
    "ask",
    "notify",
    "settings_of",
    "signer",
    "target_of",
]

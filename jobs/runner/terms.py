"""What holds for all work of one source, step or destination: limits and patience."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass

from app.config import Config
from app.store.queue import Ordered
from domain.breaker import UNLIMITED, BreakerPolicy
from domain.schedule import RetryPolicy

DOWNLOADS_PER_SOURCE = 8
TRANSFORM_RETRY = RetryPolicy(attempts=5)


@dataclass(frozen=True, slots=True)
class Terms:
    """The limits of one scope. Without ``breaker`` nothing cuts its work off."""

    concurrency: int = UNLIMITED
    retry: RetryPolicy = TRANSFORM_RETRY
    breaker: BreakerPolicy | None = None
    rate_per_s: float | None = None
    ordered: Ordered = ""


STEP_TERMS = Terms()


def terms_of(config: Config) -> Mapping[str, Terms]:
    """The terms of every source and destination, under their present and former names."""
    found: dict[str, Terms] = {}
    for source in config.sources:
        terms = Terms(DOWNLOADS_PER_SOURCE, source.download.retry, source.download.breaker)
        found |= {f"source:{name}": terms for name in (source.name, *source.was)}
    for place in config.destinations:
        terms = Terms(
            place.concurrency,
            place.retry,
            place.breaker,
            place.rate_per_s,
            place.on_dead if place.order == "file" else "",
        )
        found |= {f"destination:{name}": terms for name in (place.name, *place.was)}
    return found


def transform_slots() -> int:
    """How many transformations one process does at once."""
    return max(os.cpu_count() or 1, 2)

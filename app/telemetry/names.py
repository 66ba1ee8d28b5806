"""Every name that a log line may have, and what it means: ``noun.participle``."""

from __future__ import annotations

LOG_NAMES = {
    "library.said": "A library reported something through Python's logging.",
}

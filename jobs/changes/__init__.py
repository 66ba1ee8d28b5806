"""Changes: walk a provider's change feed from a cursor, and tell what was found."""

from __future__ import annotations

from jobs.changes.walk import ChangesJob, Walked, walk

__all__ = ["ChangesJob", "Walked", "walk"]

"""Every name that a log line may have, and what it means: ``noun.participle``."""

from __future__ import annotations

LOG_NAMES = {
    "ledger.batch.broken": "A batch failed by a defect; its callers got 503.",
    "ledger.request.broken": "One command failed by a defect; the others went on.",
    "ledger.store.unavailable": "The store did not answer; the waiting callers got 503.",
    "sequencer.broken": "The sequencer failed by a defect and tries again.",
    "sequencer.resign.failed": "The sequencer's lease was not given back; it runs out by itself.",
    "sequencer.store.unavailable": "The sequencer could not reach the store and tries again.",
    "library.said": "A library reported something through Python's logging.",
}

"""Every name that a log line may have, and what it means: ``noun.participle``."""

from __future__ import annotations

LOG_NAMES = {
    "delivery.accepted": "A first delivery was stored.",
    "delivery.conflict": "Other bytes came under a known event id; they are in quarantine.",
    "delivery.duplicate": "A known event came again and got its receipt.",
    "delivery.failed": "A delivery could not be stored in time and was answered with 503.",
    "delivery.ignored": "A first delivery was stored that starts no work.",
    "delivery.rejected": "A delivery was turned away, for the reason given.",
    "delivery.stale": "A first delivery was stored that a newer one had overtaken.",
    "handshake.unvisited": "A source asked for a call that this process cannot make.",
    "hooks.request.broken": "A delivery failed by a defect and was answered with 500.",
    "ledger.batch.broken": "A batch failed by a defect; its callers got 503.",
    "ledger.request.broken": "One command failed by a defect; the others went on.",
    "ledger.store.unavailable": "The store did not answer; the waiting callers got 503.",
    "library.said": "A library reported something through Python's logging.",
    "refusal.lost": "A refused delivery could not be recorded in the history.",
    "sequencer.broken": "The sequencer failed by a defect and tries again.",
    "sequencer.resign.failed": "The sequencer's lease was not given back; it runs out by itself.",
    "sequencer.store.unavailable": "The sequencer could not reach the store and tries again.",
}

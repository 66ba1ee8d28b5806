"""Lists in the order in which they are shown, rare events by their kind, the last hour's rates."""

from __future__ import annotations

from migrations import Index, add_indexes

revision = "0002"
down_revision = "0001"
OLDEST = "0001"

RARE = """type IN (
    'JobRetried', 'JobCancelled', 'JobDiscarded', 'MessageResolved', 'RunStarted', 'FileHeld',
    'FileReleased', 'FileErased', 'Paused', 'Resumed', 'TokenCreated', 'TokenRevoked',
    'ConflictResolved', 'BodyShown', 'InstallationCreated', 'LogRestored', 'ConfigurationChanged',
    'RecipeDefined', 'SubscriptionNoticed'
)"""
INDEXES = (
    Index("jobs_ordered", "jobs", "ordered_ms, id"),
    Index("messages_ordered", "messages", "ordered_ms, id"),
    Index("receipts_key", "receipts", "source, key_id, accepted_ms"),
    Index("receipts_lately", "receipts", "source, accepted_ms, verdict"),
    Index("receipts_ignored", "receipts", "source, type", "verdict = 'ignored'"),
    Index("attempts_lately", "attempts", "scope, started_ms, outcome, ended_ms"),
    Index("events_rare", "events", "type, id", RARE),
)


def upgrade() -> None:
    add_indexes(INDEXES)

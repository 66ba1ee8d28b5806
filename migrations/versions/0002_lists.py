"""Lists in the order in which they are shown, rare events by their kind, the last hour's rates."""

from __future__ import annotations

from alembic import op

revision = "0002"
down_revision = "0001"

INDEXES = """
CREATE INDEX jobs_ordered ON jobs (ordered_ms, id);
CREATE INDEX messages_ordered ON messages (ordered_ms, id);
CREATE INDEX receipts_key ON receipts (source, key_id, accepted_ms);
CREATE INDEX receipts_lately ON receipts (source, accepted_ms, verdict);
CREATE INDEX receipts_ignored ON receipts (source, type) WHERE verdict = 'ignored';
CREATE INDEX attempts_lately ON attempts (scope, started_ms, outcome, ended_ms);
CREATE INDEX events_rare ON events (type, id) WHERE type IN (
    'JobRetried', 'JobCancelled', 'JobDiscarded', 'MessageResolved', 'RunStarted', 'FileHeld',
    'FileReleased', 'FileErased', 'Paused', 'Resumed', 'TokenCreated', 'TokenRevoked',
    'ConflictResolved', 'BodyShown', 'InstallationCreated', 'LogRestored', 'ConfigurationChanged',
    'RecipeDefined', 'SubscriptionNoticed'
)
"""


def upgrade() -> None:
    for statement in INDEXES.split(";"):
        op.execute(statement)

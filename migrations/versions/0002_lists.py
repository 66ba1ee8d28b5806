"""Lists in the order in which they are shown, rare events by their kind, the last hour's rates."""

from __future__ import annotations

from alembic import op

revision = "0002"
down_revision = "0001"

INDEXES = """
CREATE INDEX jobs_ordered ON jobs (ordered_ms, id);
CREATE INDEX messages_ordered ON messages (ordered_ms, id);
CREATE INDEX receipts_accepted ON receipts (accepted_ms);
CREATE INDEX attempts_started ON attempts (started_ms);
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

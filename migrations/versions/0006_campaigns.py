"""Orders about many messages that outlive the process, and their place among what is rare."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"
OLDEST = "0001"

CAMPAIGN_NUMBERS = (
    "made_ms", "changed_ms", "next_ms", "gathered", "gathered_ms", "restarted", "forgiven",
    "is_held", "until_ms",
)  # fmt: skip
CAMPAIGN_TEXTS = ("state", "operator", "reason", "gathered_id", "owner")
MESSAGE_TEXTS = ("message", "stream", "destination", "fate", "why")
RARE = """
CREATE INDEX events_rare ON events (type, id) WHERE type IN (
    'JobRetried', 'JobCancelled', 'JobDiscarded', 'MessageResolved', 'RunStarted', 'FileHeld',
    'FileReleased', 'FileErased', 'Paused', 'Resumed', 'TokenCreated', 'TokenRevoked',
    'ConflictResolved', 'BodyShown', 'CampaignBegun', 'CampaignEnded', 'InstallationCreated',
    'LogRestored', 'ConfigurationChanged', 'RecipeDefined', 'SubscriptionNoticed'
)
"""


def upgrade() -> None:
    number = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
    op.create_table(
        "campaigns",
        sa.Column("id", sa.Text, primary_key=True, nullable=False),
        sa.Column("plan", sa.LargeBinary, nullable=False),
        *(sa.Column(name, sa.Text, nullable=False) for name in CAMPAIGN_TEXTS),
        *(sa.Column(name, number, nullable=False) for name in CAMPAIGN_NUMBERS),
    )
    op.create_table(
        "campaign_messages",
        sa.Column("campaign", sa.Text, primary_key=True, nullable=False),
        sa.Column("place", number, primary_key=True, nullable=False, autoincrement=False),
        *(sa.Column(name, sa.Text, nullable=False) for name in MESSAGE_TEXTS),
    )
    op.create_index(
        "campaign_messages_fate", "campaign_messages", ["campaign", "fate", "destination", "place"]
    )
    op.execute("DROP INDEX events_rare")
    op.execute(RARE)

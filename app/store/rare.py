"""What is little among millions and looked for by its kind: the conditions of its indexes."""

from __future__ import annotations

import sqlalchemy as sa

# What only operators, or those who give access, bring about.
ORDERED = (
    "JobRetried",
    "JobCancelled",
    "JobDiscarded",
    "MessageResolved",
    "RunStarted",
    "FileHeld",
    "FileReleased",
    "FileErased",
    "Paused",
    "Resumed",
    "TokenCreated",
    "TokenRevoked",
    "ConflictResolved",
    "BodyShown",
    "CampaignBegun",
    "CampaignEnded",
)
# What an installation tells of itself.
TOLD = (
    "InstallationCreated",
    "LogRestored",
    "ConfigurationChanged",
    "RecipeDefined",
    "SubscriptionNoticed",
)
NAMES = (*ORDERED, *TOLD)
# Word for word the condition of the index, as a planner demands.
IS_RARE = sa.text(f"type IN ({', '.join(repr(name) for name in NAMES)})")
IS_IGNORED = sa.text("verdict = 'ignored'")

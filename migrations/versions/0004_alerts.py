"""What needed a human, since when, and who has heard of it."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"
OLDEST = "0001"

TEXTS = ("what", "name", "reason", "told")
NUMBERS = ("count", "opened_ms", "seen_ms", "closed_ms", "due_ms")


def upgrade() -> None:
    number = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
    key = sa.Column("key", sa.Text, primary_key=True, nullable=False)
    texts = [sa.Column(name, sa.Text, nullable=False) for name in TEXTS]
    numbers = [sa.Column(name, number, nullable=False) for name in NUMBERS]
    op.create_table("alerts", key, *texts, *numbers)

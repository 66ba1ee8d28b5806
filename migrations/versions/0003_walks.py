"""How far the change feeds of sources were walked, and who walks them."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"
OLDEST = "0001"

NUMBERS = (
    "epoch", "until_ms", "asked", "answered", "missed_ms", "due_ms", "not_before_ms", "walked_ms",
    "failures", "reconciled",
)  # fmt: skip


def upgrade() -> None:
    number = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
    texts = [sa.Column(name, sa.Text, nullable=False) for name in ("cursor", "owner", "error")]
    numbers = [sa.Column(name, number, nullable=False) for name in NUMBERS]
    key = sa.Column("source", sa.Text, primary_key=True, nullable=False)
    op.create_table("walks", key, *texts, *numbers)

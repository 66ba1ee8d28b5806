"""What keeps a destination to its rate and its slots, however many processes there are."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"
OLDEST = "0001"


def upgrade() -> None:
    op.create_table(
        "rates",
        sa.Column("scope", sa.Text, primary_key=True, nullable=False),
        sa.Column("began", sa.Text, nullable=False),
    )
    if op.get_bind().dialect.name == "postgresql":
        op.create_table(
            "slots",
            sa.Column("scope", sa.Text, primary_key=True, nullable=False),
            sa.Column("number", sa.BigInteger, primary_key=True, autoincrement=False),
            sa.Column("work", sa.Text, nullable=False),
        )

"""How far back the programs go that work on the tables as they are."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0008"
down_revision = "0007"
OLDEST = "0001"


def upgrade() -> None:
    number = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
    op.create_table(
        "reach",
        sa.Column("id", number, primary_key=True, nullable=False, autoincrement=False),
        sa.Column("oldest", sa.Text, nullable=False),
    )

"""A destination's messages by state, counted without reading them all."""

from __future__ import annotations

from alembic import op

revision = "0005"
down_revision = "0004"


def upgrade() -> None:
    op.execute("CREATE INDEX messages_destination ON messages (destination, state)")

"""A destination's messages by state, counted without reading them all."""

from __future__ import annotations

from migrations import Index, add_indexes

revision = "0005"
down_revision = "0004"
OLDEST = "0001"
INDEXES = (Index("messages_destination", "messages", "destination, state"),)


def upgrade() -> None:
    add_indexes(INDEXES)

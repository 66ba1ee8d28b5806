"""The tables that are on PostgreSQL only, where many processes write beside each other.

What is open has no position yet, for one process gives them; and a destination's slots are counted
one by one, for two that count leases see only those that were committed before.
"""

from __future__ import annotations

import sqlalchemy as sa

from app.store.columns import number, text
from app.store.xid8 import Xid8

only_postgresql = sa.MetaData()

unsequenced = sa.Table(
    "unsequenced",
    only_postgresql,
    number("event", key=True),
    sa.Column("xid", Xid8, nullable=False),
    info={"class": "operational"},
)

sequencer = sa.Table(
    "sequencer",
    only_postgresql,
    number("id", key=True),
    text("owner"),
    number("term"),
    number("until_ms"),
    info={"class": "operational"},
)

slots = sa.Table(
    "slots",
    only_postgresql,
    text("scope", key=True),
    number("number", key=True),
    text("work"),
    info={"class": "operational"},
)

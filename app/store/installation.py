"""What makes an installation itself: its key, its incarnation, what it last started with."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql, sqlite

from app.store import projections
from app.store import tables as t

_ONLY = 1
_CONFIGURATION = "configuration"


@dataclass(frozen=True, slots=True)
class Identity:
    """The installation of this store. The key is in the database, and so in every backup."""

    name: str
    key: bytes
    incarnation: int


def find(connection: sa.Connection) -> Identity | None:
    """The installation; ``None`` in a store that was never started with."""
    query = sa.select(t.installation.c.name, t.installation.c.key, t.installation.c.incarnation)
    row = connection.execute(query).first()
    return Identity(row.name, row.key, row.incarnation) if row else None


def create(connection: sa.Connection, identity: Identity, now_ms: int) -> Identity:
    """Make this store that installation's, unless it is one's already; gives whose it is."""
    dialect = sqlite if connection.dialect.name == "sqlite" else postgresql
    connection.execute(
        dialect.insert(t.installation)
        .values(
            id=_ONLY,
            name=identity.name,
            key=identity.key,
            incarnation=identity.incarnation,
            created_ms=now_ms,
        )
        .on_conflict_do_nothing()
    )
    return find(connection) or identity


def pinned_recipes(connection: sa.Connection) -> Mapping[str, bytes]:
    """The canonical form of every recipe that was ever defined, by digest."""
    query = sa.select(t.recipes.c.digest, t.recipes.c.form)
    return {row.digest: row.form for row in connection.execute(query)}


def last_configuration(connection: sa.Connection) -> Mapping[str, str] | None:
    """The fingerprints that the last start left; ``None`` before the first."""
    query = sa.select(t.cursors.c.value).where(t.cursors.c.name == _CONFIGURATION)
    value = connection.execute(query).scalar()
    return None if value is None else json.loads(value)


def keep_configuration(
    connection: sa.Connection, fingerprints: Mapping[str, str], now_ms: int
) -> None:
    """Leave this start's fingerprints for the next one."""
    value = json.dumps(dict(fingerprints), sort_keys=True).encode()
    row = {"name": _CONFIGURATION, "value": value, "changed_ms": now_ms}
    projections.upsert(connection, t.cursors, [row])

"""What every table is declared with: its class, and the few kinds of columns there are."""

from __future__ import annotations

from typing import Literal

import sqlalchemy as sa

TableClass = Literal["truth", "history", "operational", "projection"]

metadata = sa.MetaData()


def table(name: str, kind: TableClass, *parts: sa.schema.SchemaItem) -> sa.Table:
    """A table of this class."""
    return sa.Table(name, metadata, *parts, info={"class": kind})


# On SQLite a key of exactly this type is the row's own number and needs no index beside it.
NUMBER = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def number(name: str, *, key: bool = False, null: bool = False) -> sa.Column[int]:
    """A whole number; a time is one."""
    return sa.Column(name, NUMBER, primary_key=key, nullable=null, autoincrement=False)


def text(
    name: str, *, key: bool = False, null: bool = False, private: bool = False
) -> sa.Column[str]:
    """A text; a private one can be erased, so no report may show it."""
    info = {"private": private}
    return sa.Column(name, sa.Text, primary_key=key, nullable=null, info=info)


def some_bytes(name: str, *, null: bool = False, private: bool = False) -> sa.Column[bytes]:
    """Bytes as they are."""
    return sa.Column(name, sa.LargeBinary, nullable=null, info={"private": private})


def flag(name: str) -> sa.Column[bool]:
    """Yes or no."""
    return sa.Column(name, sa.Boolean, nullable=False)


def partial_index(name: str, where: sa.TextClause, *of: str) -> sa.Index:
    """An index of only those rows for which this holds."""
    return sa.Index(name, *of, sqlite_where=where, postgresql_where=where)

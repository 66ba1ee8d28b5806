"""A type that only PostgreSQL has."""

from __future__ import annotations

import sqlalchemy as sa


class Xid8(sa.types.UserDefinedType[str]):
    """A transaction's id, as PostgreSQL counts them without end; it never leaves the server."""

    cache_ok = True

    def get_col_spec(self, **_: object) -> str:
        """The type's name."""
        return "XID8"

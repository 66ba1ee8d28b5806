"""Who has access: the hash of each token, never the token itself."""

from __future__ import annotations

import json
from dataclasses import dataclass

import sqlalchemy as sa

from app.store import tables as t

# A use is written down at most this often: reading the API must not write all the time.
_USED_EVERY_MS = 60_000


@dataclass(frozen=True, slots=True)
class TokenRow:
    """One token as it is kept. ``scope`` names sources or a destination, empty for all."""

    id: str
    hash: str
    name: str
    role: str
    scope: tuple[str, ...]
    created_ms: int
    expires_ms: int
    revoked_ms: int | None = None
    used_ms: int | None = None

    def is_open(self, now_ms: int) -> bool:
        """Whether it opens anything: neither revoked nor run out."""
        return self.revoked_ms is None and self.expires_ms > now_ms


def insert(connection: sa.Connection, token: TokenRow) -> None:
    """Let a token in."""
    values = {c.name: getattr(token, c.name) for c in t.tokens.columns}
    connection.execute(t.tokens.insert().values(values | {"scope": json.dumps(token.scope)}))


def of_hash(connection: sa.Connection, digest: str) -> TokenRow | None:
    """The token of this hash; whether it still opens anything is for the caller to judge."""
    row = connection.execute(sa.select(t.tokens).where(t.tokens.c.hash == digest)).first()
    return None if row is None else _token(row)


def of_id(connection: sa.Connection, token: str) -> TokenRow | None:
    """The token of this id; whether it still opens anything is for the caller to judge."""
    row = connection.execute(sa.select(t.tokens).where(t.tokens.c.id == token)).first()
    return None if row is None else _token(row)


def listed(connection: sa.Connection) -> list[TokenRow]:
    """All tokens, the newest first."""
    query = sa.select(t.tokens).order_by(t.tokens.c.created_ms.desc(), t.tokens.c.id)
    return [_token(row) for row in connection.execute(query.limit(1000))]


def exists(connection: sa.Connection, now_ms: int) -> bool:
    """Whether anyone has access now."""
    query = sa.select(t.tokens.c.id).where(
        t.tokens.c.revoked_ms.is_(None), t.tokens.c.expires_ms > now_ms
    )
    return connection.execute(query.limit(1)).first() is not None


def revoke(connection: sa.Connection, token: str, now_ms: int) -> bool:
    """Shut a token out; whether there was one to shut out."""
    statement = t.tokens.update().where(t.tokens.c.id == token, t.tokens.c.revoked_ms.is_(None))
    return connection.execute(statement.values(revoked_ms=now_ms)).rowcount == 1


def is_used_lately(token: TokenRow, now_ms: int) -> bool:
    """Whether its last use is written down already."""
    return token.used_ms is not None and now_ms - token.used_ms < _USED_EVERY_MS


def use(connection: sa.Connection, token: str, now_ms: int) -> None:
    """Write down that the token was used now."""
    connection.execute(t.tokens.update().where(t.tokens.c.id == token).values(used_ms=now_ms))


def _token(row: sa.Row[tuple[object, ...]]) -> TokenRow:
    values = {name: getattr(row, name) for name in TokenRow.__dataclass_fields__}
    return TokenRow(**(values | {"scope": tuple(json.loads(values["scope"]))}))

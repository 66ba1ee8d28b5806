"""Who asks, and what they may: a bearer token in, a person or a receiver out."""

from __future__ import annotations

import asyncio
import hmac
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, cast
from urllib.parse import unquote

from litestar.connection import ASGIConnection
from litestar.exceptions import NotAuthorizedException, PermissionDeniedException
from litestar.handlers import BaseRouteHandler

from app.clock import Clock
from app.ledger import Ledger
from app.store import tokens
from app.store.engine import Store
from app.store.errors import StoreUnavailableError
from app.web.access import Role, digest_of
from domain.commands import Cause

RANKS: dict[Role, int] = {"receiver": 0, "viewer": 1, "operator": 2, "admin": 3}
LOCAL = "local"
_LONGEST_TOKEN = 200
_LONGEST_NAME = 200
_WHO = "laufzettel.who"
# Who gives the order, told by a command on the machine itself. Percent-encoded.
_OPERATOR = "laufzettel-operator"

Guard = Callable[[ASGIConnection[Any, Any, Any, Any], BaseRouteHandler], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class Who:
    """Whoever holds a token. ``scope`` is what they are limited to; empty for all."""

    token: str
    name: str
    role: Role
    scope: tuple[str, ...] = ()

    @property
    def sources(self) -> tuple[str, ...] | None:
        """The only sources that they may see; ``None`` for all of them."""
        found = tuple(p.removeprefix("source:") for p in self.scope if p.startswith("source:"))
        return found or None

    @property
    def destination(self) -> str | None:
        """The only destination that a receiver may see; ``None`` for everyone else."""
        if self.role != "receiver":
            return None
        return next((p.removeprefix("destination:") for p in self.scope), "")

    def sees(self, source: str) -> bool:
        """Whether what belongs to this source is theirs to see."""
        return self.sources is None or source in self.sources

    def cause(self, reason: str) -> Cause:
        """They, as the cause of what they order."""
        return Cause("operator", id=self.token, operator=self.name, reason=reason)


@dataclass(frozen=True, slots=True)
class Doorkeeper:
    """Knows the tokens.

    ``local`` is the digest of a token that ends with the process and that only the user of this
    machine can read, who could read the store as well: an admin, under the name that they tell.
    """

    store: Store
    ledger: Ledger
    clock: Clock
    local: str = ""

    def recognise(self, header: str, operator: str = "") -> Who | None:
        """Who sent this ``Authorization`` header; ``None`` for nobody who has access now."""
        scheme, _, token = header.partition(" ")
        if scheme.lower() != "bearer" or not 0 < len(token.strip()) <= _LONGEST_TOKEN:
            return None
        digest = digest_of(token.strip())
        if self.local and hmac.compare_digest(digest, self.local):
            return Who(LOCAL, unquote(operator)[:_LONGEST_NAME] or "somebody", "admin")
        now_ms = int(self.clock.now().timestamp() * 1000)
        # The look-up is by hash: how long it takes tells nothing about any token.
        with self.store.read() as connection:
            row = tokens.of_hash(connection, digest)
        if row is None or not row.is_open(now_ms):
            return None
        if not tokens.is_used_lately(row, now_ms):
            self._note_use(row.id)
        return Who(row.id, row.name, cast("Role", row.role), row.scope)

    def known(self, token_id: str) -> tuple[Who, str] | None:
        """Who has the token of this id, and the token's hash; ``None`` if it opens nothing now."""
        if token_id == LOCAL and self.local:
            return Who(LOCAL, "somebody", "admin"), self.local
        now_ms = int(self.clock.now().timestamp() * 1000)
        with self.store.read() as connection:
            row = tokens.of_id(connection, token_id)
        if row is None or not row.is_open(now_ms):
            return None
        return Who(row.id, row.name, cast("Role", row.role), row.scope), row.hash

    def _note_use(self, token: str) -> None:
        try:
            self.ledger.operate(lambda c, now_ms: tokens.use(c, token, now_ms))
        except StoreUnavailableError:
            return  # reading goes on while nothing can be written


def needs(role: Role) -> Guard:
    """A guard that lets those through who have this role or a higher one."""

    async def guard(connection: ASGIConnection[Any, Any, Any, Any], _: BaseRouteHandler) -> None:
        keeper: Doorkeeper = connection.app.state.doorkeeper
        header = connection.headers.get("authorization", "")
        operator = connection.headers.get(_OPERATOR, "")
        who = await asyncio.to_thread(keeper.recognise, header, operator) if header else None
        if who is None:
            raise NotAuthorizedException
        if RANKS[who.role] < RANKS[role]:
            raise PermissionDeniedException(f"this needs the role {role}")
        connection.scope[_WHO] = who  # type: ignore[literal-required]

    return guard


def who_asks(scope: dict[str, Any]) -> Who:
    """Whoever the guard let through; a route without a guard has nobody."""
    return cast("Who", scope[_WHO])

"""Giving and taking access: tokens that are shown once, and the first one by a code."""

from __future__ import annotations

import hashlib
import hmac
import threading
from base64 import b32encode
from dataclasses import dataclass
from typing import Literal, get_args

from app.clock import Clock, Dice
from app.ledger import Ledger
from app.ledger.requests import Control
from app.store import tokens
from app.store.tokens import TokenRow
from domain.commands import Cause
from domain.installation import TokenCreated, TokenRevoked

Role = Literal["viewer", "operator", "admin", "receiver"]
ROLES: tuple[Role, ...] = get_args(Role)

_MARK = "lzt_"
_LONGEST_MS = 10 * 366 * 86_400_000
_CODE_LETTERS = 12
_CODE_TRIES = 5
_CODE_LIFE_S = 900.0
_SIGNED_IN_MS = 30 * 86_400_000


@dataclass(frozen=True, slots=True)
class TokenWish:
    """What a token shall open, and for how long."""

    name: str
    role: Role
    scope: tuple[str, ...] = ()
    life_ms: int = 365 * 86_400_000

    @property
    def flaw(self) -> str:
        """Why there can be no such token, "" if there can."""
        if self.role not in ROLES:
            return f"role must be one of {', '.join(ROLES)}"
        if not self.name.strip():
            return "a token needs a name"
        wanted = "destination:" if self.role == "receiver" else "source:"
        if any(not place.startswith(wanted) for place in self.scope):
            return f"the scope of a {self.role} names {wanted}…"
        if self.role == "receiver" and len(self.scope) != 1:
            return "a receiver is limited to one destination"
        if self.role == "admin" and self.scope:
            return "an admin cannot be limited"
        return "" if 0 < self.life_ms <= _LONGEST_MS else "the life of a token is 1 ms to 10 years"


@dataclass(frozen=True, slots=True)
class NewToken:
    """A token that was made: ``token`` is shown once and kept nowhere."""

    id: str
    token: str
    expires_ms: int


def digest_of(token: str) -> str:
    """The hash under which a token is kept; it holds chance enough to need no salt."""
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).hexdigest()


@dataclass(frozen=True, slots=True)
class Access:
    """Gives and takes access, each with an event that says who did and why."""

    ledger: Ledger
    clock: Clock
    dice: Dice

    def create(self, wish: TokenWish, cause: Cause) -> NewToken:
        """Make a token; raises ``ValueError`` for a wish with a flaw."""
        if wish.flaw:
            raise ValueError(wish.flaw)
        secret = _MARK + _letters(self.dice.salt() + self.dice.salt())
        token_id = "tok_" + _letters(self.dice.salt())[:16]
        now_ms = int(self.clock.now().timestamp() * 1000)
        row = TokenRow(
            id=token_id,
            hash=digest_of(secret),
            name=wish.name,
            role=wish.role,
            scope=wish.scope,
            created_ms=now_ms,
            expires_ms=now_ms + wish.life_ms,
        )
        event = TokenCreated(
            at_ms=now_ms,
            token=token_id,
            role=wish.role,
            scope=wish.scope,
            expires_ms=row.expires_ms,
            name=wish.name,
        )
        # The event first: access that nobody knows of would be worse than one that never came.
        self.ledger.submit(Control(event, cause)).result()
        self.ledger.operate(lambda connection, _: tokens.insert(connection, row))
        return NewToken(token_id, secret, row.expires_ms)

    def revoke(self, token_id: str, cause: Cause) -> bool:
        """Shut a token out at once; whether there was one to shut out."""
        was_open = self.ledger.operate(lambda c, now_ms: tokens.revoke(c, token_id, now_ms))
        if was_open:
            now_ms = int(self.clock.now().timestamp() * 1000)
            self.ledger.submit(Control(TokenRevoked(at_ms=now_ms, token=token_id), cause)).result()
        return was_open


class SignIn:
    """A code that whoever sees the terminal exchanges for the first token, once."""

    def __init__(self, access: Access) -> None:
        self._access = access
        self._lock = threading.Lock()
        self._tries = _CODE_TRIES
        self._ends = access.clock.monotonic() + _CODE_LIFE_S
        self.code = _letters(access.dice.salt())[:_CODE_LETTERS]

    def exchange(self, code: str) -> NewToken | None:
        """A token of role admin for the right code; ``None`` for a wrong, used or old one."""
        with self._lock:
            is_open = self._tries > 0 and self._access.clock.monotonic() < self._ends
            self._tries -= 1
            told = code.strip().lower().encode("utf-8", "surrogatepass")
            if not is_open or not hmac.compare_digest(told, self.code.encode()):
                return None
            self._tries = 0
        wish = TokenWish("signed in at the terminal", "admin", life_ms=_SIGNED_IN_MS)
        return self._access.create(wish, Cause("system", reason="sign-in code"))


def _letters(chance: bytes) -> str:
    return b32encode(chance).decode().rstrip("=").lower()

"""Access: tokens given, listed and taken; the first one for the code on the terminal."""

from __future__ import annotations

from typing import Annotated, Any

from litestar import delete, get, post
from litestar.exceptions import NotAuthorizedException
from litestar.params import FromPath, JSONBody, QueryParameter
from msgspec import Meta, Struct
from msgspec.structs import replace

from app.store import tokens
from app.store.tokens import TokenRow
from app.web.access import NewToken, Role, TokenWish
from app.web.api.office import Asker, Here, Reasoned, at, there
from app.web.api.orders import Call, IdempotencyKey, once
from app.web.auth import needs
from app.web.problems import Problem
from app.web.rest import ProblemError

_DAY_MS = 86_400_000


Why = Annotated[str, QueryParameter(name="reason", min_length=1, max_length=1000)]


class TokenOut(Struct):
    """A token as it is listed: what it opens, never what it is."""

    id: str
    name: str
    role: str
    scope: list[str]
    created_at: str | None
    expires_at: str | None
    revoked_at: str | None
    used_at: str | None


class TokenMade(Struct):
    """A token that was made: this is the only time that it is shown."""

    id: str
    token: str
    expires_at: str | None


class TokenIn(Reasoned, forbid_unknown_fields=True):
    """What the token shall open: ``scope`` holds ``source:NAME`` or one ``destination:NAME``."""

    name: Annotated[str, Meta(min_length=1, max_length=200)] = ""
    role: Role = "viewer"
    scope: tuple[str, ...] = ()
    days: Annotated[int, Meta(ge=1, le=3650)] = 365


class CodeIn(Struct, forbid_unknown_fields=True):
    """The code that the terminal shows."""

    code: Annotated[str, Meta(min_length=1, max_length=100)]


@get("/tokens", guards=[needs("admin")], sync_to_thread=True, summary="Tokens", tags=["access"])
def token_list(office: Here) -> list[TokenOut]:
    """All tokens, the newest first, those that were revoked or ran out included."""
    with office.store.read() as connection:
        return [_shown(token) for token in tokens.listed(connection)]


@post(
    "/tokens", guards=[needs("admin")], sync_to_thread=True, summary="Give access", tags=["access"]
)
def token_create(
    office: Here, who: Asker, data: JSONBody[TokenIn], key: IdempotencyKey = ""
) -> TokenMade:
    """Make a token. The answer holds it; it is shown once and kept nowhere.

    So a repeat under the same key is told the token's id, and not the token.
    """
    wish = TokenWish(data.name, data.role, data.scope, data.days * _DAY_MS)
    if wish.flaw:
        raise ProblemError(Problem(422, "invalid-request", wish.flaw))
    fresh: list[TokenMade] = []

    def make() -> TokenMade:
        fresh.append(_made(office.access.create(wish, who.cause(data.reason))))
        return replace(fresh[0], token="")

    kept = once(office, who, Call("create token", data, key), make, TokenMade)
    if not fresh:
        why = f"{kept.id} was made under this key and shown then: revoke it, and use a new key"
        raise ProblemError(Problem(409, "idempotency-conflict", why))
    return fresh[0]


@delete(
    "/tokens/{token:str}",
    guards=[needs("admin")],
    status_code=200,
    sync_to_thread=True,
    summary="Take access away",
    tags=["access"],
)
def token_revoke(office: Here, who: Asker, token: FromPath[str], why: Why = "revoked") -> TokenOut:
    """Shut the token out at once."""
    office.access.revoke(token, who.cause(why))
    with office.store.read() as connection:
        found = next((row for row in tokens.listed(connection) if row.id == token), None)
    return _shown(there(found))


@post("/sign-in", sync_to_thread=True, summary="The code for a token", tags=["access"], security=[])
def sign_in(office: Here, data: JSONBody[CodeIn]) -> TokenMade:
    """Exchange the one-time code on the terminal for a first token of role admin."""
    made = office.sign_in.exchange(data.code) if office.sign_in else None
    if made is None:
        raise NotAuthorizedException
    return _made(made)


def _made(made: NewToken) -> TokenMade:
    return TokenMade(made.id, made.token, at(made.expires_ms))


def _shown(token: TokenRow) -> TokenOut:
    return TokenOut(
        id=token.id,
        name=token.name,
        role=token.role,
        scope=list(token.scope),
        created_at=at(token.created_ms),
        expires_at=at(token.expires_ms),
        revoked_at=at(token.revoked_ms),
        used_at=at(token.used_ms),
    )


HANDLERS: list[Any] = [token_list, token_create, token_revoke, sign_in]

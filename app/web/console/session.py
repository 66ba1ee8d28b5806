"""Who sits at the console: a sealed cookie in place of a token, and proof that a form is ours."""

from __future__ import annotations

import asyncio
import hashlib
import hmac
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

from litestar.connection import ASGIConnection
from litestar.datastructures import Cookie
from litestar.exceptions import NotAuthorizedException, PermissionDeniedException
from litestar.handlers import BaseRouteHandler

from app.config import Config
from app.store.reading import log
from app.web.access import Role
from app.web.api.office import Office
from app.web.auth import RANKS, Doorkeeper, Guard, Who
from app.web.console import proxied

COOKIE = "laufzettel_session"
PATH = "/console"
_SCOPE_KEY = "laufzettel.session"
_LIFE_S = 12 * 3600
_LONGEST = 400
_PARTS = 4


@dataclass(frozen=True, slots=True)
class Session:
    """Someone who signed in. ``proof`` goes into every form: other sites cannot know it.

    ``position`` is where the log ended before their page was made: what came since is news.
    """

    who: Who
    proof: str = field(repr=False)
    position: int = 0

    def may(self, role: Role) -> bool:
        """Whether they have this role or a higher one."""
        return RANKS[self.who.role] >= RANKS[role]


def begin(office: Office, keeper: Doorkeeper, token: str) -> Cookie | None:
    """The cookie for the holder of a token; ``None`` for what opens nothing here.

    It holds no token: it is sealed with the installation's key and names the token that it came
    from, whose end is its own.
    """
    who = keeper.recognise(f"Bearer {token}")
    if who is None or RANKS[who.role] < RANKS["viewer"]:
        return None
    found = keeper.known(who.token)
    if found is None:
        return None
    ends_ms = office.now_ms + _LIFE_S * 1000
    nonce = office.access.dice.salt().hex()
    body = f"{who.token}.{ends_ms}.{nonce}"
    value = f"{body}.{_seal(office, body, found[1])}"
    return _cookie(office.config, value, _LIFE_S)


def end(config: Config) -> Cookie:
    """The cookie that ends a session."""
    return _cookie(config, "", 0)


def read(office: Office, keeper: Doorkeeper, value: str) -> Session | None:
    """Whose cookie this is; ``None`` if it is not ours, ran out, or its token opens nothing now."""
    parts = value.split(".")
    if len(value) > _LONGEST or len(parts) != _PARTS or not parts[1].isdecimal():
        return None
    if int(parts[1]) <= office.now_ms:
        return None
    found = keeper.known(parts[0])
    if found is None or RANKS[found[0].role] < RANKS["viewer"]:
        return None
    if not hmac.compare_digest(parts[3].encode(), _seal(office, _body(value), found[1]).encode()):
        return None
    with office.store.read() as connection:
        position = log.last_position(connection)
    return Session(found[0], _seal(office, f"form.{value}", found[1]), position)


def signed_in(role: Role) -> Guard:
    """A guard that lets those through who signed in and have this role or a higher one."""

    async def guard(connection: ASGIConnection[Any, Any, Any, Any], _: BaseRouteHandler) -> None:
        state = connection.app.state
        value = connection.cookies.get(COOKIE, "")
        found = (
            await asyncio.to_thread(read, state.office, state.doorkeeper, value) if value else None
        )
        found = found or await asyncio.to_thread(_proxied, connection)
        if found is None:
            raise NotAuthorizedException
        connection.scope[_SCOPE_KEY] = found  # type: ignore[literal-required]
        if not found.may(role):
            raise PermissionDeniedException(f"this needs the role {role}")

    return guard


def _proxied(connection: ASGIConnection[Any, Any, Any, Any]) -> Session | None:
    """Whoever a trusted proxy has signed in; there is no cookie of theirs."""
    office: Office = connection.app.state.office
    who = proxied.told(connection, office.config)
    if who is None:
        return None
    with office.store.read() as reading:
        position = log.last_position(reading)
    return Session(who, proxied.proof_of(office.ledger, who), position)


def session_of(scope: Any) -> Session | None:
    """Whoever the guard let through."""
    found: Session | None = scope.get(_SCOPE_KEY)
    return found


def is_from_here(headers: Mapping[str, str]) -> bool:
    """Whether a form was sent by a page of this site, as far as the browser says so."""
    site = headers.get("sec-fetch-site", "")
    if site:
        return site == "same-origin"
    origin = headers.get("origin", "")
    return not origin or urlsplit(origin).netloc == headers.get("host", "")


def is_proven(session: Session, told: str) -> bool:
    """Whether a form carries the proof of this session."""
    return hmac.compare_digest(told.encode("utf-8", "replace"), session.proof.encode())


def is_secure(config: Config) -> bool:
    """Whether browsers reach us over TLS, be it ours or a proxy's."""
    place = config.installation
    return place.tls is not None or place.base_url.startswith("https:")


def _cookie(config: Config, value: str, life_s: int) -> Cookie:
    return Cookie(
        key=COOKIE,
        value=value,
        path=PATH,
        max_age=life_s,
        httponly=True,
        samesite="strict",
        secure=is_secure(config),
    )


def _body(value: str) -> str:
    return value.rpartition(".")[0]


def _seal(office: Office, body: str, token_hash: str) -> str:
    # The token's hash is in it: a session never outlives the token that it came from.
    key = hmac.digest(office.ledger.book.key, b"console session", hashlib.sha256)
    return hmac.new(key, f"{body}.{token_hash}".encode(), hashlib.sha256).hexdigest()

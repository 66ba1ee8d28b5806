"""What proves us to others: headers that stay, or OAuth tokens renewed once for all threads."""

from __future__ import annotations

import json
import threading
from base64 import b64encode
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from urllib.parse import quote_plus, urlencode

from app.clock import Clock
from app.config import Auth, Basic, Bearer, HeaderAuth, OAuth2
from jobs.outbound.addresses import named_host
from jobs.tools import Header, Http, Limits, Request, SignInFailed, Target, Trouble, Whole

_ANSWER_BYTES = 65_536
_LIMITS = Limits(total_s=10.0, span_s=10.0)
# A token that ends while a request is under way would be refused: renew a little early.
_EARLY_S = 30.0
_SHORTEST_LIFE_S = 60.0
# One that just failed is not asked by each thread in turn: they would queue up behind its limit.
_QUIET_S = 5.0


@dataclass(frozen=True, slots=True)
class Fixed:
    """Headers that never change: bearer, basic, a header of one's own; empty for none."""

    pairs: tuple[Header, ...] = field(default=(), repr=False)

    def headers(self) -> tuple[Header, ...]:
        """The headers to send."""
        return self.pairs

    def renewed(self, stale: tuple[Header, ...]) -> None:
        """There are no newer ones."""
        del stale


@dataclass(frozen=True, slots=True)
class Grant:
    """Where and as whom OAuth client credentials are asked for."""

    token_url: str
    client_id: str
    client_secret: str = field(repr=False)
    scope: str = ""
    target: Target = field(default_factory=Target)


def credentials_of(
    auth: Auth | None, *, http: Http, clock: Clock, target: Target
) -> Fixed | ClientCredentials:
    """What the configuration's ``auth`` means; ``target`` gives the ways of a token request.

    A token service may be private without being listed: its address is the operator's own.
    """
    match auth:
        case None:
            return Fixed()
        case Bearer() | Basic() | HeaderAuth():
            return Fixed(fixed_headers(auth))
        case OAuth2(token_url, client_id, client_secret, scope):
            target = replace(target, private_hosts=(named_host(token_url),))
            grant = Grant(token_url, client_id, client_secret.reveal(), scope, target)
            return ClientCredentials(grant, http=http, clock=clock)


def fixed_headers(auth: Bearer | Basic | HeaderAuth) -> tuple[Header, ...]:
    """The headers of what never changes."""
    match auth:
        case Bearer(token):
            return (("authorization", f"Bearer {token.reveal()}"),)
        case Basic(user, password):
            pair = b64encode(f"{user}:{password.reveal()}".encode()).decode()
            return (("authorization", f"Basic {pair}"),)
        case HeaderAuth(name, value):
            return ((name.lower(), value.reveal()),)


class ClientCredentials:
    """OAuth 2 client credentials; one request renews for all who found the same token stale."""

    def __init__(self, grant: Grant, *, http: Http, clock: Clock) -> None:
        self._grant = grant
        self._http = http
        self._clock = clock
        self._lock = threading.Lock()
        self._pairs: tuple[Header, ...] = ()
        self._ends_at: datetime | None = None
        self._failure: SignInFailed | None = None
        self._failed_s = 0.0

    def headers(self) -> tuple[Header, ...] | SignInFailed:
        """The present token's header, fetched if there is none or it ends soon."""
        with self._lock:
            if self._pairs and (self._ends_at is None or self._clock.now() < self._ends_at):
                return self._pairs
            return self._fetched()

    def renewed(self, stale: tuple[Header, ...]) -> tuple[Header, ...] | SignInFailed:
        """A newer header than the stale one: what another thread fetched meanwhile, or our own."""
        with self._lock:
            return self._pairs if self._pairs and self._pairs != stale else self._fetched()

    def _fetched(self) -> tuple[Header, ...] | SignInFailed:
        now_s = self._clock.monotonic()
        if self._failure is not None and now_s - self._failed_s < _QUIET_S:
            return self._failure
        fetched = self._asked()
        self._failure = fetched if isinstance(fetched, SignInFailed) else None
        self._failed_s = self._clock.monotonic()
        return fetched

    def _asked(self) -> tuple[Header, ...] | SignInFailed:
        self._pairs = ()
        body = bytearray()
        with self._http.open(
            self._request(), target=self._grant.target, limits=_LIMITS, pulse=lambda: True
        ) as answer:
            if isinstance(answer, Trouble):
                return SignInFailed("sign-in needed: the token service was not reached")
            if not 200 <= answer.status < 300:
                return SignInFailed(f"sign-in needed: the token service answered {answer.status}")
            if not isinstance(answer.pour(body.extend, limit_bytes=_ANSWER_BYTES), Whole):
                return SignInFailed("sign-in needed: the token service's answer broke off")
        return self._kept(bytes(body))

    def _request(self) -> Request:
        grant = self._grant
        scope = {"scope": grant.scope} if grant.scope else {}
        form = {"grant_type": "client_credentials"} | scope
        pair = f"{quote_plus(grant.client_id)}:{quote_plus(grant.client_secret)}".encode()
        headers = (
            ("authorization", f"Basic {b64encode(pair).decode()}"),
            ("content-type", "application/x-www-form-urlencoded"),
            ("accept", "application/json"),
        )
        return Request("POST", grant.token_url, headers, urlencode(form).encode())

    def _kept(self, body: bytes) -> tuple[Header, ...] | SignInFailed:
        try:
            answer = json.loads(body)
            token, life_s = str(answer["access_token"]), float(answer.get("expires_in") or 0)
        except (ValueError, TypeError, KeyError, RecursionError):
            return SignInFailed("sign-in needed: the token service's answer holds no token")
        self._pairs = (("authorization", f"Bearer {token}"),)
        lasting_s = max(life_s - _EARLY_S, min(life_s, _SHORTEST_LIFE_S) / 2)
        self._ends_at = self._clock.now() + timedelta(seconds=lasting_s) if life_s else None
        return self._pairs

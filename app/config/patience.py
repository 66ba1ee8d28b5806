"""The keys that sources and destinations have alike: names, retry, breaker, auth, retention."""

from __future__ import annotations

import re
from urllib.parse import SplitResult, urlsplit

from app.config.table import SHORTEST_S, Table
from app.config.values import Auth, Basic, Bearer, HeaderAuth, OAuth2, Retention
from domain.breaker import BreakerPolicy
from domain.schedule import RetryPolicy

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
_HEADER = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]{1,128}")
_POINTER = re.compile(r"(?:/(?:[^~/]|~[01])*)*")


def read_retry(table: Table) -> RetryPolicy:
    """``retry = { base, factor, cap, window, attempts }``."""
    default = RetryPolicy()
    inner = table.table("retry")
    policy = RetryPolicy(
        base_s=inner.seconds("base", default.base_s),
        factor=inner.number("factor", default.factor, least=1.0, most=10.0),
        cap_s=inner.seconds("cap", default.cap_s),
        window_s=inner.seconds("window", default.window_s),
        attempts=inner.integer("attempts", 0, least=1, most=1000) or None,
    )
    if policy.base_s <= 0:
        inner.complain("base", "is zero", 'write at least "1ms"')
    if policy.cap_s < policy.base_s:
        inner.complain("cap", "is shorter than base", "raise cap or lower base")
    inner.finish()
    return policy


def read_breaker(table: Table) -> BreakerPolicy:
    """``breaker = { consecutive, rate, min, window, open }``."""
    default = BreakerPolicy()
    inner = table.table("breaker")
    policy = BreakerPolicy(
        consecutive=inner.integer("consecutive", default.consecutive, least=1),
        rate=inner.number("rate", default.rate, least=0.01, most=1.0),
        minimum=inner.integer("min", default.minimum, least=1),
        window_s=inner.seconds("window", default.window_s, least=SHORTEST_S),
        open_s=inner.seconds("open", default.open_s, least=SHORTEST_S),
    )
    inner.finish()
    return policy


def read_retention(table: Table, default: Retention) -> Retention:
    """``[retention]``: what it does not name stays as in the table above it."""
    inner = table.table("retention")
    retention = Retention(
        payloads_s=_kept_s(inner, "payloads", default.payloads_s),
        deliveries_s=_kept_s(inner, "deliveries", default.deliveries_s),
        messages_s=_kept_s(inner, "messages", default.messages_s),
        deleted_s=_kept_s(inner, "deleted", default.deleted_s),
        artifacts_s=_kept_s(inner, "artifacts", default.artifacts_s),
    )
    inner.finish()
    return retention


def _kept_s(table: Table, key: str, default: float | None) -> float | None:
    if table.raw(key) == "forever":
        return None
    return table.seconds(key, -1.0) if table.has(key) else default


def read_auth(table: Table) -> Auth | None:
    """``auth``: ``"bearer env:…"``, ``"basic USER env:…"``, ``"header NAME env:…"`` or OAuth."""
    raw = table.raw("auth")
    if raw is None or raw == "":
        return None
    if isinstance(raw, dict):
        return _read_oauth(table.table("auth"))
    words = (table.of_kind("auth", str) or "").split()
    key = table.key("auth")
    match words:
        case ["bearer", reference]:
            secret = table.reading.secret(key, reference)
            return Bearer(secret) if secret else None
        case ["basic", user, reference]:
            secret = table.reading.secret(key, reference)
            return Basic(table.reading.resolve(key, user) or "", secret) if secret else None
        case ["header", name, reference] if _HEADER.fullmatch(name):
            secret = table.reading.secret(key, reference)
            return HeaderAuth(name, secret) if secret else None
    mend = 'write "bearer env:NAME", "basic USER env:NAME" or "header NAME env:NAME"'
    table.complain("auth", "cannot be read", mend)
    return None


def _read_oauth(table: Table) -> Auth | None:
    table.choice("oauth2", ("client_credentials",), "client_credentials")
    token_url = table.text("token_url")
    client_id = table.text("client_id")
    client_secret = table.secret("client_secret")
    scope = table.text("scope")
    for key in ("token_url", "client_id", "client_secret"):
        if not table.has(key):
            table.complain(key, "is missing", "OAuth client credentials need it")
    read_http_url(table, "token_url")
    table.finish()
    return OAuth2(token_url, client_id, client_secret, scope) if client_secret else None


def read_http_url(table: Table, key: str, default: str = "") -> str:
    """An ``http`` or ``https`` address without user and password."""
    url = table.text(key, default)
    if url and (parts := _split(url)) is None:
        table.complain(key, "is no http or https address", 'write "https://host/path"')
    elif url and parts and "@" in parts.netloc:
        table.complain(key, "holds a user or a password", "use auth, with the secret as env:NAME")
    return url


def _split(url: str) -> SplitResult | None:
    try:
        parts = urlsplit(url)
        is_http = parts.scheme in {"http", "https"} and bool(parts.hostname)
        return parts if is_http and (parts.port is None or parts.port > 0) else None
    except ValueError:
        return None


def is_header_name(name: str) -> bool:
    """Whether a header may be called so."""
    return _HEADER.fullmatch(name) is not None


def is_pointer(text: str) -> bool:
    """Whether it is a JSON Pointer; the empty one means the whole."""
    return _POINTER.fullmatch(text) is not None


def read_was(table: Table) -> tuple[str, ...]:
    """``was``: the names that this part had before."""
    return table.texts("was")


def check_name(table: Table, name: str) -> None:
    """Names are identities and stand in addresses: plain letters and digits."""
    if not _NAME.fullmatch(name):
        what = "is no usable name"
        mend = "use letters, digits, '.', '_' and '-', at most 64, the first a letter or digit"
        table.reading.report(table.path, what, mend)

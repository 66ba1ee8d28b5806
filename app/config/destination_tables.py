"""``[destinations.NAME]``: who is told, how, and how patient we are."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Literal

from app.config.patience import (
    check_name,
    is_header_name,
    is_pointer,
    read_auth,
    read_breaker,
    read_http_url,
    read_retry,
    read_was,
)
from app.config.secret import SecretUrl
from app.config.table import SHORTEST_S, Table
from app.config.values import Delivered, Destination
from domain.addresses import host_of, is_private
from domain.schemes import STANDARD_SCHEME, Key, load_key

MESSAGE_TYPES = (
    "file.version.completed",
    "file.version.failed",
    "file.deleted",
    "file.renamed",
    "file.erased",
)
_STATUS = re.compile(r"[1-5](?:xx|[0-9]{2})")
_METHODS: tuple[Literal["POST", "PUT", "PATCH"], ...] = ("POST", "PUT", "PATCH")
_FORMATS: tuple[Literal["standard", "cloudevents"], ...] = ("standard", "cloudevents")
_ORDERS: tuple[Literal["none", "file"], ...] = ("none", "file")
_ON_DEAD: tuple[Literal["continue", "block"], ...] = ("continue", "block")
_SUPERSEDED: tuple[Literal["skip", "send"], ...] = ("skip", "send")
_UNCLEAR: tuple[Literal["resend", "hold", "ask"], ...] = ("resend", "hold", "ask")


def read_destination(name: str, table: Table) -> Destination:
    """One destination; its complaints go to the table's reading."""
    check_name(table, name)
    body = _read_body(table)
    unclear, ask = _read_unclear(table)
    destination = Destination(
        name=name,
        url=_read_url(table),
        was=read_was(table),
        method=table.choice("method", _METHODS, "POST"),
        secrets=table.secrets("secrets"),
        auth=read_auth(table),
        headers=_read_headers(table),
        ca=read_path(table, "ca"),
        client_cert=read_path(table, "client_cert"),
        proxy=_read_proxy(table),
        format="body" if body else table.choice("format", _FORMATS, "standard"),
        body=body,
        types=_read_types(table),
        order=table.choice("order", _ORDERS, "none"),
        on_dead=table.choice("on_dead", _ON_DEAD, "continue"),
        superseded=table.choice("superseded", _SUPERSEDED, "skip"),
        unclear=unclear,
        ask=ask,
        delivered=_read_delivered(table),
        permanent=_read_permanent(table),
        reference=_read_reference(table),
        timeout_s=table.seconds("timeout", 10.0, least=SHORTEST_S),
        concurrency=table.integer("concurrency", 8, least=1, most=1000),
        rate_per_s=table.per_second("rate"),
        retry=read_retry(table),
        breaker=read_breaker(table),
        private=table.flag("private", default=False),
    )
    _check(table, destination)
    table.finish()
    return destination


def read_path(table: Table, key: str) -> Path | None:
    """A file's path; a relative one starts at the folder of the configuration."""
    text = table.text(key)
    if not text:
        return None
    path = table.reading.folder / Path(text).expanduser()
    if not path.is_file():
        table.complain(key, "names no file", "write the path of a file that exists")
    return path


def _read_url(table: Table) -> str:
    if not table.has("url"):
        table.complain("url", "is missing", 'write "https://host/path"')
    return read_http_url(table, "url")


def _read_proxy(table: Table) -> SecretUrl | None:
    return read_secret_url(table, "proxy") if table.of_kind("proxy", str) else None


def read_secret_url(table: Table, key: str, default: str = "") -> SecretUrl:
    """An address that may hold a password, if a reference leads to it; a literal one may not."""
    literal = table.of_kind(key, str) or ""
    user_info = literal.partition("://")[2].partition("/")[0].rpartition("@")[0]
    if ":" in user_info and not literal.startswith("env:"):
        mend = 'put the whole address into the .env and write "env:NAME" here'
        table.complain(key, "holds a literal password", mend)
        return SecretUrl(default)
    return SecretUrl(table.text(key, default))


def _read_body(table: Table) -> tuple[tuple[str, str], ...]:
    body = table.text_pairs("body")
    for name, place in body:
        if not is_pointer(place):
            table.complain(f"body.{name}", "is no JSON Pointer", 'write it like "/data/file_id"')
    return body


def _read_headers(table: Table) -> tuple[tuple[str, str], ...]:
    headers = table.text_pairs("headers")
    for name, value in headers:
        if not is_header_name(name):
            table.complain(f"headers.{name}", "is no name of a header", 'write it like "X-Name"')
        if any(ord(sign) < 32 for sign in value):
            table.complain(f"headers.{name}", "holds a control character", "remove it")
        if name.lower().startswith("webhook-") or name.lower() in _OURS:
            table.complain(f"headers.{name}", "is set by Laufzettel itself", "remove it")
    return headers


_OURS = frozenset({"idempotency-key", "content-length", "host", "transfer-encoding"})


def _read_types(table: Table) -> tuple[str, ...]:
    types = table.texts("types", MESSAGE_TYPES[:2])
    unknown = [word for word in types if word not in MESSAGE_TYPES]
    if unknown:
        mend = f"write some of: {', '.join(MESSAGE_TYPES)}"
        table.complain("types", f"has unknown types ({', '.join(unknown)})", mend)
    return types


def _read_unclear(table: Table) -> tuple[Literal["resend", "hold", "ask"], str]:
    unclear = table.choice("unclear", _UNCLEAR, "resend")
    ask = table.text("ask")
    if (unclear == "ask") != bool(ask):
        mend = 'set both: unclear = "ask" and ask = "GET https://…/{message_id}"'
        table.complain("ask", "and unclear do not fit", mend)
    url = ask.removeprefix("GET ").strip()
    if ask and ("{message_id}" not in url or not url.startswith(("http://", "https://"))):
        table.complain("ask", "cannot be read", 'write "GET https://…/{message_id}"')
    return unclear, url


def _read_delivered(table: Table) -> Delivered:
    inner = table.table("delivered")
    status = inner.texts("status", ("2xx",))
    if not status or any(not _STATUS.fullmatch(word) for word in status):
        inner.complain("status", "cannot be read", 'write it like ["2xx"] or ["200", "204"]')
    equals = inner.raw("equals")
    if equals is not None and not isinstance(equals, (str, int, bool)):
        inner.complain("equals", "is neither text, whole number, true nor false", "write one")
        equals = None
    if not is_pointer(inner.text("pointer")):
        inner.complain("pointer", "is no JSON Pointer", 'write it like "/ok"')
    delivered = Delivered(status=status, pointer=inner.text("pointer"), equals=equals)
    if (equals is not None) != bool(delivered.pointer):
        inner.complain("pointer", "and equals do not fit", "set both or none")
    inner.finish()
    return delivered


def _read_permanent(table: Table) -> tuple[int, ...]:
    codes = table.of_kind("permanent", list)
    if codes is None:
        return Destination(name="", url="").permanent
    good = tuple(code for code in codes if type(code) is int and 400 <= code <= 599)
    if len(good) < len(codes):
        table.complain("permanent", "holds something that is no error status", "400 to 599")
    return good


def _read_reference(table: Table) -> str:
    reference = table.text("reference")
    if reference and not reference.startswith(("/", "header:")):
        table.complain("reference", "cannot be read", 'write "/id" or "header:X-Id"')
    return reference


def _check(table: Table, destination: Destination) -> None:
    if destination.body and table.has("format"):
        table.complain("body", "and format do not fit", "set one of the two")
    if destination.on_dead == "block" and destination.order == "none":
        mend = 'set order = "file", or on_dead = "continue"'
        table.complain("on_dead", 'is "block" without an order', mend)
    if not destination.private and is_private(host_of(destination.url)):
        mend = "set private = true if this destination is meant"
        table.complain("url", "is a loopback or private address", mend)
    for secret in destination.secrets:
        if signing_key(secret.reveal()) is None:
            what = f"{secret.reference} leads to no signing secret"
            table.complain("secrets", what, "it starts with whsec_ or whsk_, and base64 follows")


def signing_key(value: str) -> Key | None:
    """The key in a ``whsec_`` or ``whsk_`` secret; ``None`` if it is none to sign with."""
    key = load_key(value, STANDARD_SCHEME)
    return key if isinstance(key, Key) and key.kind != "public" else None

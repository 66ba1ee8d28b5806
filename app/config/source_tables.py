"""``[sources.NAME]``: how a system's deliveries are verified, read, and its bytes fetched."""

from __future__ import annotations

import base64
import binascii
import re
from dataclasses import fields
from typing import Literal

from app.config.patience import (
    check_name,
    read_auth,
    read_breaker,
    read_header_name,
    read_retention,
    read_retry,
    read_was,
)
from app.config.secret import Secret
from app.config.table import Table
from app.config.values import ACTIONS, Action, Download, HmacScheme, Retention, Source, SourceMap

# Those that sign with a certificate of their own, or not at all, need no secret from us.
WITHOUT_SECRET = frozenset({"aws-sns"})
_SCHEME_KEYS = (
    "algorithm",
    "key",
    "encoding",
    "signature",
    "prefix",
    "separator",
    "signed",
    "timestamp",
)
_PLACEHOLDER = re.compile(r"\{([^{}]*)\}")
_PLAIN_PLACEHOLDERS = frozenset({"body", "method", "url", "path", "query"})
_POINTER = re.compile(r"(?:/(?:[^~/]|~[01])*)*")


def read_source(
    name: str, table: Table, *, retention: Retention, profiles: tuple[str, ...]
) -> Source:
    """One source; its complaints go to the table's reading."""
    check_name(table, name)
    profile = table.choice("profile", profiles, "standard-webhooks")
    scheme = _read_scheme(table, is_hmac=profile == "hmac")
    source = Source(
        name=name,
        profile=profile,
        was=read_was(table),
        secrets=table.secrets("secrets"),
        tolerance_s=table.seconds("tolerance", 300.0),
        max_body_bytes=table.size_bytes("max_body", 2**20),
        same=table.choice("same", _SAME, "bytes"),
        volatile=_read_pointers(table, "volatile"),
        order=table.choice("order", _ORDER, ""),
        unknown_fields=table.choice("unknown_fields", _UNKNOWN_FIELDS, "keep"),
        unknown_types=table.choice("unknown_types", _UNKNOWN_TYPES, "ignore"),
        repeat_of_failed=table.choice("repeat_of_failed", _REPEAT, "receipt"),
        keep_body=table.choice("keep_body", _KEEP, "full"),
        private_fields=_read_pointers(table, "private_fields"),
        unsigned=table.flag("unsigned", default=False),
        scheme=scheme,
        map=_read_map(table),
        types=_read_types(table),
        batch=_read_pointer(table, "batch"),
        download=_read_download(table),
        retention=read_retention(table, retention),
    )
    _check(table, source)
    table.finish()
    return source


_SAME: tuple[Literal["bytes", "json"], ...] = ("bytes", "json")
_ORDER: tuple[Literal["", "version", "sequence", "time"], ...] = (
    "",
    "version",
    "sequence",
    "time",
)
_UNKNOWN_FIELDS: tuple[Literal["keep", "refuse"], ...] = ("keep", "refuse")
_UNKNOWN_TYPES: tuple[Literal["ignore", "refuse"], ...] = ("ignore", "refuse")
_REPEAT: tuple[Literal["receipt", "retry"], ...] = ("receipt", "retry")
_KEEP: tuple[Literal["full", "masked", "none"], ...] = ("full", "masked", "none")
_ALGORITHMS: tuple[Literal["sha256", "sha512", "sha1"], ...] = ("sha256", "sha512", "sha1")
_KEY_FORMS: tuple[Literal["text", "hex", "base64"], ...] = ("text", "hex", "base64")
_ENCODINGS: tuple[Literal["hex", "base64"], ...] = ("hex", "base64")


def _read_scheme(table: Table, *, is_hmac: bool) -> HmacScheme | None:
    if not is_hmac:
        for key in _SCHEME_KEYS:
            if table.raw(key) is not None:
                mend = (
                    f'remove it, or set profile = "hmac" if {table.path} signs in a way of its own'
                )
                table.complain(key, 'means something only with profile = "hmac"', mend)
        return None
    scheme = HmacScheme(
        signed=table.text("signed", "{body}"),
        signature=_read_header(table, "signature"),
        algorithm=table.choice("algorithm", _ALGORITHMS, "sha256"),
        key=table.choice("key", _KEY_FORMS, "text"),
        encoding=table.choice("encoding", _ENCODINGS, "hex"),
        prefix=table.text("prefix"),
        separator=table.text("separator"),
        timestamp=_read_header(table, "timestamp"),
    )
    if "signature" not in table:
        table.complain("signature", "is missing", 'name the header: "header:X-Signature"')
    _check_template(table, scheme.signed)
    return scheme


def _check_template(table: Table, signed: str) -> None:
    for placeholder in _PLACEHOLDER.findall(signed):
        if placeholder.startswith("header:"):
            read_header_name(table, "signed", placeholder.removeprefix("header:"))
        elif placeholder not in _PLAIN_PLACEHOLDERS:
            mend = "use {header:NAME}, {body}, {method}, {url}, {path} or {query}"
            table.complain("signed", f"has an unknown placeholder {{{placeholder}}}", mend)


def _read_header(table: Table, key: str) -> str:
    text = table.text(key)
    if not text:
        return ""
    if not text.startswith("header:"):
        table.complain(key, "names no header", 'write "header:X-Name"')
        return ""
    return read_header_name(table, key, text.removeprefix("header:"))


def _read_map(table: Table) -> SourceMap:
    inner = table.table("map")
    places = {field.name: _read_place(inner, field.name) for field in fields(SourceMap)}
    inner.finish()
    return SourceMap(**places)


def _read_place(table: Table, key: str) -> str:
    place = table.text(key)
    is_template = key == "url" and place.startswith(("http://", "https://"))
    if not place or is_template:
        return place
    if place.startswith("header:"):
        read_header_name(table, key, place.removeprefix("header:"))
    elif not (place.startswith("/") and _POINTER.fullmatch(place)):
        mend = 'write a JSON Pointer like "/data/file/id" or "header:X-Name"'
        table.complain(key, "is no place in a delivery", mend)
    return place


def _read_types(table: Table) -> tuple[tuple[str, Action], ...]:
    inner = table.table("types")
    return tuple((word, inner.choice(word, ACTIONS, "ignore")) for word in inner.names())


def _read_pointers(table: Table, key: str) -> tuple[str, ...]:
    pointers = table.texts(key)
    for pointer in pointers:
        _check_pointer(table, key, pointer)
    return pointers


def _read_pointer(table: Table, key: str) -> str:
    pointer = table.text(key)
    _check_pointer(table, key, pointer)
    return pointer


def _check_pointer(table: Table, key: str, pointer: str) -> None:
    if not _POINTER.fullmatch(pointer):
        table.complain(key, "is no JSON Pointer", 'write it like "/data/retry"')


def _read_download(table: Table) -> Download:
    inner = table.table("download")
    download = Download(
        hosts=_read_hosts(inner),
        auth=read_auth(inner),
        max_size_bytes=inner.size_bytes("max_size", 5 * 2**30),
        timeout_s=inner.seconds("timeout", 60.0),
        min_rate_bytes_s=inner.bytes_per_second("min_rate", 16 * 2**10),
        total_s=inner.seconds("total", 0.0) or None,
        retry=read_retry(inner),
        breaker=read_breaker(inner),
    )
    if download.auth and not download.hosts:
        mend = "name the hosts that may see the credentials"
        inner.complain("hosts", "is missing, and auth is set", mend)
    inner.finish()
    return download


def _read_hosts(table: Table) -> tuple[str, ...]:
    hosts = table.texts("hosts")
    for host in hosts:
        if not host or any(sign in host for sign in "/@?# "):
            table.complain(
                "hosts", "holds something that is no host", 'write "host" or "host:port"'
            )
    return hosts


def _check(table: Table, source: Source) -> None:
    if not source.secrets and source.profile not in WITHOUT_SECRET and "secrets" not in table:
        mend = 'add secrets = ["env:NAME"] and set NAME in the .env'
        table.complain("secrets", "is missing: deliveries could not be verified", mend)
    if table.raw("secrets") == []:
        table.complain("secrets", "is empty: deliveries could not be verified", 'add "env:NAME"')
    if source.profile == "hmac":
        for key in ("event_id", "type", "file_id"):
            if not getattr(source.map, key):
                mend = f'say where it is: map.{key} = "/…" or "header:…"'
                table.complain(f"map.{key}", "is missing", mend)
    if source.keep_body == "masked" and not source.private_fields:
        table.complain("private_fields", "is empty, and keep_body is masked", "name the fields")
    if source.volatile and source.same == "bytes":
        table.complain("volatile", 'means nothing with same = "bytes"', 'set same = "json"')
    if not source.unsigned:
        for place in unsigned_places(source):
            if place in IDENTITY_PLACES:
                mend = "let the source sign it, take it from signed bytes, or set unsigned = true"
                table.complain(place, "is taken from bytes that are not signed", mend)
    for secret in source.secrets:
        _check_secret(table, source, secret)


# What an event, a file, its content and its bytes are known by.
IDENTITY_PLACES = ("map.event_id", "map.file_id", "map.version", "map.url")


def unsigned_places(source: Source) -> tuple[str, ...]:
    """The keys of a scheme of one's own that take ids or the time from unsigned bytes."""
    scheme = source.scheme
    if scheme is None:
        return ()
    signed = {name.lower() for name in _PLACEHOLDER.findall(scheme.signed)}
    places = {
        **{place: getattr(source.map, place.removeprefix("map.")) for place in IDENTITY_PLACES},
        "map.delivery_id": source.map.delivery_id,
        "timestamp": scheme.timestamp and f"header:{scheme.timestamp}",
    }
    return tuple(key for key, place in places.items() if not _is_signed(place, signed))


def _is_signed(place: str, signed: set[str]) -> bool:
    if place.startswith("header:"):
        return place.lower() in signed
    is_template = place.startswith(("http://", "https://"))  # filled from what is judged itself
    return not place or is_template or "body" in signed


def _check_secret(table: Table, source: Source, secret: Secret) -> None:
    if secret_bytes(source, secret) is None:
        what = f"{secret.reference} does not lead to a secret of the form that this profile has"
        form = source.scheme.key if source.scheme else "whsec_ and base64"
        table.complain("secrets", what, f"the form is: {form}")


def secret_bytes(source: Source, secret: Secret) -> bytes | None:
    """The key that a source's secret stands for; ``None`` if it has another form."""
    value = secret.reveal()
    try:
        if source.profile == "standard-webhooks":
            return base64.b64decode(value.removeprefix("whsec_"), validate=True)
        if source.scheme and source.scheme.key == "base64":
            return base64.b64decode(value, validate=True)
        if source.scheme and source.scheme.key == "hex":
            return bytes.fromhex(value)
    except (binascii.Error, ValueError):
        return None
    return value.encode()

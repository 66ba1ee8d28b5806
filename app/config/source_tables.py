"""``[sources.NAME]``: how a system's deliveries are verified, read, and its bytes fetched."""

from __future__ import annotations

from dataclasses import fields, replace
from functools import partial
from typing import Literal
from urllib.parse import urlsplit

from app.config.feed_tables import read_changes
from app.config.patience import (
    check_name,
    is_pointer,
    read_auth,
    read_breaker,
    read_retention,
    read_retry,
    read_was,
)
from app.config.secret import Secret
from app.config.table import SHORTEST_S, Table
from app.config.values import Download, Retention, Source
from domain import profiles
from domain.profiles import Action, FieldMap, HmacSettings, Profile, SourceSettings
from domain.profiles.standard import STANDARD_WEBHOOKS

_SCHEME_KEYS = tuple(entry.name for entry in fields(HmacSettings))
LONGEST_TOLERANCE_S = 366 * 86400.0
_SAME: tuple[Literal["bytes", "json"], ...] = ("bytes", "json")
_ORDER: tuple[Literal["version", "sequence", "time"], ...] = ("version", "sequence", "time")
_UNKNOWN_FIELDS: tuple[Literal["keep", "refuse"], ...] = ("keep", "refuse")
_UNKNOWN_TYPES: tuple[Literal["ignore", "refuse"], ...] = ("ignore", "refuse")
_REPEAT: tuple[Literal["receipt", "retry"], ...] = ("receipt", "retry")
_KEEP: tuple[Literal["full", "masked", "none"], ...] = ("full", "masked", "none")
_ALGORITHMS: tuple[Literal["sha256", "sha512", "sha1"], ...] = ("sha256", "sha512", "sha1")
_KEY_FORMS: tuple[Literal["text", "hex", "base64"], ...] = ("text", "hex", "base64")
_ENCODINGS: tuple[Literal["hex", "base64"], ...] = ("hex", "base64")
_KEY_STYLES: tuple[Literal["form", "raw"], ...] = ("form", "raw")
_ACTIONS: tuple[Action, ...] = (
    "version",
    "deleted",
    "restored",
    "renamed",
    "lifecycle",
    "changed",
    "ignore",
)


def read_source(name: str, table: Table, *, retention: Retention) -> Source | None:
    """One source, or ``None`` where it cannot be made ready; complaints go to the reading."""
    check_name(table, name)
    chosen = table.choice("profile", profiles.names(), STANDARD_WEBHOOKS.name)
    profile = profiles.profile(chosen) or STANDARD_WEBHOOKS
    secrets = _read_secrets(table, profile)
    download = _read_download(table)
    same, volatile = _read_sameness(table, profile)
    settings = _read_settings(table, profile, secrets, download)
    settings = replace(settings, same=same, volatile=volatile)
    keep_body, private_fields = _read_privacy(table)
    unsigned = table.flag("unsigned", default=False)
    make = partial(
        Source,
        name=name,
        was=read_was(table),
        secrets=secrets,
        max_body_bytes=table.size_bytes("max_body", 2**20),
        same=same,
        volatile=volatile,
        repeat_of_failed=table.choice("repeat_of_failed", _REPEAT, "receipt"),
        keep_body=keep_body,
        private_fields=private_fields,
        unsigned=unsigned,
        download=download,
        changes=read_changes(table, profile, download),
        retention=read_retention(table, retention),
    )
    table.finish()
    ready = _ready(table, settings, unsigned=unsigned)
    return make(ready=ready) if ready else None


def _read_sameness(
    table: Table, profile: Profile
) -> tuple[Literal["bytes", "json"], tuple[str, ...]]:
    same = table.choice("same", _SAME, profile.same)
    volatile = _read_pointers(table, "volatile", profile.volatile)
    if table.raw("volatile") and same == "bytes":
        table.complain("volatile", 'means nothing with same = "bytes"', 'set same = "json"')
    return same, volatile


def _read_privacy(table: Table) -> tuple[Literal["full", "masked", "none"], tuple[str, ...]]:
    keep_body = table.choice("keep_body", _KEEP, "full")
    private_fields = _read_pointers(table, "private_fields")
    if keep_body == "masked" and not private_fields:
        table.complain("private_fields", "is empty, and keep_body is masked", "name the fields")
    return keep_body, private_fields


def _read_secrets(table: Table, profile: Profile) -> tuple[Secret, ...]:
    secrets = table.secrets("secrets")
    if profile.needs_secrets and not table.raw("secrets"):
        mend = 'write secrets = ["env:NAME"] and set NAME in the .env'
        table.complain("secrets", "names none: deliveries could not be verified", mend)
    return secrets


def _read_settings(
    table: Table, profile: Profile, secrets: tuple[Secret, ...], download: Download
) -> SourceSettings:
    is_hmac = profile.name == "hmac"
    return SourceSettings(
        profile=profile.name,
        secrets=tuple(secret.reveal() for secret in secrets),
        tolerance_s=round(table.seconds("tolerance", 0.0, most=LONGEST_TOLERANCE_S))
        if table.has("tolerance")
        else None,
        hmac=_read_scheme(table, is_hmac=is_hmac),
        mapping=_read_map(table, is_hmac=is_hmac),
        types=_read_types(table),
        batch=table.text("batch") if table.has("batch") else None,
        order=table.choice("order", _ORDER, "version") if table.has("order") else None,
        unknown_fields=table.choice("unknown_fields", _UNKNOWN_FIELDS, "keep"),
        unknown_types=table.choice("unknown_types", _UNKNOWN_TYPES, "ignore"),
        key_style=table.choice("key_style", _KEY_STYLES, "form")
        if table.has("key_style")
        else None,
        allow=table.texts("allow"),
        host=download.hosts[0] if download.hosts else "",
    )


def _ready(table: Table, settings: SourceSettings, *, unsigned: bool) -> profiles.Source | None:
    source = profiles.prepare(settings)
    if not isinstance(source, profiles.Source):
        for error in source:
            # That there is no secret is said already, with the reference that leads to none.
            if error.key != "secrets" or settings.secrets:
                table.complain(error.key, error.reason, error.mend)
        return None
    if not unsigned:
        for name in profiles.unsigned_identity(source):
            what = "is taken from bytes that are not signed: whoever can reach us can change it"
            mend = "let the source sign it, take it from signed bytes, or set unsigned = true"
            table.complain(f"map.{name}", what, mend)
    return source


def _read_scheme(table: Table, *, is_hmac: bool) -> HmacSettings | None:
    if not is_hmac:
        for key in _SCHEME_KEYS:
            if table.raw(key) is not None:
                mend = 'remove it, or set profile = "hmac" where the source signs in its own way'
                table.complain(key, 'means something only with profile = "hmac"', mend)
        return None
    return HmacSettings(
        algorithm=table.choice("algorithm", _ALGORITHMS, "sha256"),
        key=table.choice("key", _KEY_FORMS, "text"),
        encoding=table.choice("encoding", _ENCODINGS, "hex"),
        signature=table.text("signature"),
        prefix=table.text("prefix"),
        separator=table.text("separator"),
        signed=table.text("signed", "{body}"),
        timestamp=table.text("timestamp"),
    )


def _read_map(table: Table, *, is_hmac: bool) -> FieldMap:
    inner = table.table("map")
    places = {entry.name: _read_place(inner, entry.name) for entry in fields(FieldMap)}
    inner.finish()
    for key in ("event_id", "type", "file_id") if is_hmac else ():
        if not places[key]:
            inner.complain(key, "is missing", 'say where it is: "/…" or "header:…"')
    return FieldMap(**places)


def _read_place(table: Table, key: str) -> str | tuple[str, ...]:
    is_list = isinstance(table.raw(key), list)
    return table.texts(key) if is_list else table.text(key)


def _read_types(table: Table) -> tuple[tuple[str, Action], ...]:
    inner = table.table("types")
    return tuple((word, inner.choice(word, _ACTIONS, "ignore")) for word in inner.names())


def _read_pointers(table: Table, key: str, default: tuple[str, ...] = ()) -> tuple[str, ...]:
    pointers = table.texts(key, default)
    if not all(map(is_pointer, pointers)):
        table.complain(
            key, "holds something that is no JSON Pointer", 'write it like "/data/retry"'
        )
    return pointers


def _read_download(table: Table) -> Download:
    inner = table.table("download")
    download = Download(
        hosts=_read_hosts(inner),
        auth=read_auth(inner),
        max_size_bytes=inner.size_bytes("max_size", 5 * 2**30),
        timeout_s=inner.seconds("timeout", 60.0, least=SHORTEST_S),
        min_rate_bytes_s=inner.bytes_per_second("min_rate", 16 * 2**10),
        total_s=inner.seconds("total", 0.0) or None,
        fresh_link=inner.text("fresh_link"),
        fresh_pointer=inner.text("fresh_pointer", "/url"),
        rewrites=inner.flag("rewrites", default=False),
        retry=read_retry(inner),
        breaker=read_breaker(inner),
    )
    if download.auth and not download.hosts:
        mend = "name the hosts that may see the credentials"
        inner.complain("hosts", "is missing, and auth is set", mend)
    _check_fresh_link(inner, download)
    inner.finish()
    return download


def _check_fresh_link(table: Table, download: Download) -> None:
    place = download.fresh_link
    if not is_pointer(download.fresh_pointer):
        table.complain("fresh_pointer", "is no JSON Pointer", 'write it like "/data/url"')
    if not place:
        return
    host = place.partition("://")[2].partition("/")[0]
    if not place.startswith(("https://", "http://")) or "{" in host or "@" in host:
        mend = 'write it like "https://api.example.org/files/{file_id}/link"'
        table.complain("fresh_link", "is no address with a host of its own", mend)
    elif host not in download.hosts:
        what = "asks a host that is not among hosts, and would show it the credentials"
        table.complain("fresh_link", what, "add the host to hosts")


def _read_hosts(table: Table) -> tuple[str, ...]:
    hosts = table.texts("hosts")
    if not all(map(_is_host, hosts)):
        table.complain("hosts", "holds something that is no host", 'write "host" or "host:port"')
    return hosts


def _is_host(host: str) -> bool:
    if not host or set(host) & set("/@?# "):
        return False
    try:
        return urlsplit(f"//{host}").port != 0
    except ValueError:  # no number, or one above 65535
        return False

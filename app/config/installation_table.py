"""``[laufzettel]``: the database, the broker, the artifact store, and where we are reached."""

from __future__ import annotations

import ipaddress
from pathlib import Path
from typing import get_args
from urllib.parse import parse_qsl, urlsplit

from app.config.destination_tables import read_path, read_secret_url
from app.config.patience import is_header_name, read_http_url
from app.config.secret import SecretUrl
from app.config.table import Table
from app.config.values import ConsoleRole, Installation, ProxySignIn, Tls

CONSOLE_ROLES: tuple[ConsoleRole, ...] = get_args(ConsoleRole)
_DATABASES = ("sqlite", "postgresql")
_BROKERS = ("memory", "redis", "rediss", "amqp", "amqps")
_STORES = ("file", "s3")
_WORDS = {"postgres": "postgresql", "valkey": "redis", "valkeys": "rediss"}


def read_installation(table: Table) -> Installation:
    """The part that names what everything else stands on."""
    database = _read_address(table, "database", "sqlite:///var/laufzettel.db", _DATABASES)
    artifacts = _read_artifacts(table)
    host, port = _read_listen(table)
    base_url = read_http_url(table, "base_url", "http://127.0.0.1:8080").rstrip("/")
    installation = Installation(
        database=database,
        database_direct=_read_direct(table),
        broker=_read_address(table, "broker", "memory:", _BROKERS),
        artifacts=artifacts,
        listen_host=host,
        listen_port=port,
        base_url=base_url,
        public_url=read_http_url(table, "public_url").rstrip("/") or base_url,
        trusted_proxies=_read_proxies(table),
        sign_in=_read_sign_in(table),
        tls=_read_tls(table),
        database_path=_local_path(table, database, "sqlite"),
        artifacts_path=_local_path(table, artifacts, "file"),
    )
    if installation.database_direct and installation.is_embedded:
        table.complain("database_direct", "means nothing on SQLite", "remove it")
    table.finish()
    return installation


def _read_address(table: Table, key: str, default: str, schemes: tuple[str, ...]) -> SecretUrl:
    address = read_secret_url(table, key, default)
    if _WORDS.get(address.scheme, address.scheme) not in schemes:
        what = f"begins with none of: {', '.join(schemes)}"
        table.complain(key, what, f'write it like "{default}"')
        return SecretUrl(default)
    return address


def _read_direct(table: Table) -> SecretUrl | None:
    if not table.of_kind("database_direct", str):
        return None
    return _read_address(table, "database_direct", "postgresql://user@host/db", ("postgresql",))


def _read_artifacts(table: Table) -> SecretUrl:
    # "file:" means the store here, not a file that holds the value: only "env:" is followed.
    literal = table.of_kind("artifacts", str) or "file:var/artifacts"
    if literal.startswith("file:"):
        return SecretUrl(literal)
    address = _read_address(table, "artifacts", "file:var/artifacts", _STORES)
    if address.scheme == "s3":
        _check_bucket(table, address)
    return address


def _check_bucket(table: Table, address: SecretUrl) -> None:
    mend = 'write it like "s3://bucket/prefix?endpoint=https://host&region=eu-central-1"'
    try:
        parts = urlsplit(address.reveal())
        asked = dict(parse_qsl(parts.query))
        endpoint = urlsplit(asked.get("endpoint", "https://s3"))
        is_http = endpoint.scheme in {"http", "https"} and bool(endpoint.hostname)
        is_named = parts.scheme == "s3" and bool(parts.hostname)
    except ValueError:
        table.complain("artifacts", "is no address", mend)
        return
    if not is_named:
        table.complain("artifacts", "names no bucket", mend)
    if not is_http:
        table.complain("artifacts", "has an endpoint that is no http or https address", mend)
    if unknown := sorted(asked.keys() - {"endpoint", "region"}):
        table.complain("artifacts", f"has unknown settings ({', '.join(unknown)})", mend)


def _local_path(table: Table, address: SecretUrl, scheme: str) -> Path | None:
    if address.scheme != scheme:
        return None
    place = address.reveal().partition(":")[2].partition("?")[0]
    if scheme == "sqlite":  # sqlite:///relative, sqlite:////absolute
        place = place.removeprefix("///")
    elif place.startswith("///"):
        place = place.removeprefix("//")
    if not place or place == ":memory:":
        key = "database" if scheme == "sqlite" else "artifacts"
        table.complain(key, "names no place on disk", "write a path: nothing may be lost")
    return table.reading.folder / Path(place).expanduser()


def _read_listen(table: Table) -> tuple[str, int]:
    host, colon, port = table.text("listen", "127.0.0.1:8080").rpartition(":")
    if not colon or not port.isascii() or not port.isdigit() or int(port) > 65535:
        table.complain("listen", "is no address with a port", 'write it like "127.0.0.1:8080"')
        return "127.0.0.1", 8080
    return host.strip("[]") or "0.0.0.0", int(port)  # noqa: S104 - ":8080" asks for every address


def _read_proxies(table: Table) -> tuple[str, ...]:
    proxies = table.texts("trusted_proxies")
    for proxy in proxies:
        try:
            ipaddress.ip_network(proxy)
        except ValueError:
            mend = 'write addresses or networks: ["10.0.0.0/8"]'
            table.complain("trusted_proxies", "holds something that is no network", mend)
    return proxies


def _read_sign_in(table: Table) -> ProxySignIn | None:
    if not table.has("sign_in"):
        return None
    inner = table.table("sign_in")
    header = inner.text("header")
    role = inner.choice("role", CONSOLE_ROLES, "viewer") if inner.has("role") else ""
    roles = tuple((name, _role(inner, name, word)) for name, word in inner.text_pairs("roles"))
    inner.finish()
    if not header:
        return None
    if not is_header_name(header):
        inner.complain("header", "is no name of a header", 'write it like "X-Forwarded-User"')
    if not table.has("trusted_proxies"):
        mend = "name the proxy's addresses there; from others the header is not believed"
        table.complain("trusted_proxies", "is empty, and sign_in needs it", mend)
    return ProxySignIn(header, role or "", roles)


def _role(table: Table, name: str, word: str) -> ConsoleRole:
    for role in CONSOLE_ROLES:
        if role == word:
            return role
    mend = f"write one of: {', '.join(CONSOLE_ROLES)}"
    table.complain(f"roles.{name}", "is no role", mend)
    return "viewer"


def _read_tls(table: Table) -> Tls | None:
    inner = table.table("tls")
    cert, key = read_path(inner, "cert"), read_path(inner, "key")
    inner.finish()
    if (cert is None) != (key is None):
        table.complain("tls", "names only one of cert and key", "name both")
    return Tls(cert, key) if cert and key else None

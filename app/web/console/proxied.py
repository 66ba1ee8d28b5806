"""Who a trusted proxy says has signed in with it: believed from its addresses alone."""

from __future__ import annotations

import hashlib
import hmac
from functools import lru_cache
from ipaddress import IPv4Network, IPv6Network, ip_address, ip_network
from typing import Any

from litestar.connection import ASGIConnection

from app.config import Config
from app.ledger import Ledger
from app.web.auth import Who

# Stands in the audit where others have the id of their token.
_WAY = "proxy"
_LONGEST_NAME = 200


def told(connection: ASGIConnection[Any, Any, Any, Any], config: Config) -> Who | None:
    """The user that the proxy names; ``None`` for anybody else's word, or for two names."""
    place = config.installation
    if place.sign_in is None or not _is_trusted(connection.scope, place.trusted_proxies):
        return None
    wanted = place.sign_in.header.lower().encode()
    found = [value for name, value in connection.scope["headers"] if name.lower() == wanted]
    # Two headers of the name mean that one is the visitor's own, which the proxy let through.
    if len(found) != 1:
        return None
    name = found[0].decode("utf-8", "replace").strip()
    if not 0 < len(name) <= _LONGEST_NAME or not name.isprintable():
        return None
    role = place.sign_in.role_of(name)
    return Who(_WAY, name, role) if role else None


def proof_of(ledger: Ledger, who: Who) -> str:
    """What forms of this user carry: nobody else can know it."""
    key = hmac.digest(ledger.book.key, b"console proxy", hashlib.sha256)
    return hmac.new(key, who.name.encode(), hashlib.sha256).hexdigest()


def _is_trusted(scope: Any, proxies: tuple[str, ...]) -> bool:
    client = scope.get("client")
    if not client:
        return False
    try:
        address = ip_address(client[0])
    except ValueError:
        return False
    mapped = getattr(address, "ipv4_mapped", None) or address
    return any(mapped in network for network in _networks(proxies))


@lru_cache(maxsize=8)
def _networks(proxies: tuple[str, ...]) -> tuple[IPv4Network | IPv6Network, ...]:
    return tuple(ip_network(proxy) for proxy in proxies)

"""Which internet addresses are public: one table for what is configured and for what is called."""

from __future__ import annotations

import ipaddress
import re
from urllib.parse import urlsplit

Address = ipaddress.IPv4Address | ipaddress.IPv6Address

# IANA's special-purpose registries, and the metadata and wire servers of clouds among public ones.
_REFUSED_V4 = tuple(
    ipaddress.IPv4Network(text)
    for text in (
        *("0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16"),
        *("172.16.0.0/12", "192.0.0.0/24", "192.0.2.0/24", "192.31.196.0/24", "192.52.193.0/24"),
        *("192.88.99.0/24", "192.168.0.0/16", "192.175.48.0/24", "198.18.0.0/15"),
        *("198.51.100.0/24", "203.0.113.0/24", "224.0.0.0/3", "168.63.129.16/32"),
    )
)
_GLOBAL_V6 = ipaddress.IPv6Network("2000::/3")
_REFUSED_V6 = tuple(
    ipaddress.IPv6Network(text)
    for text in ("2001::/23", "2001:db8::/32", "2002::/16", "2620:4f:8000::/48", "3fff::/20")
)
_NAT64 = ipaddress.IPv6Network("64:ff9b::/96")
# Never by a name that happens to resolve to them: only where the literal address is allowed.
_LITERAL_ONLY = tuple(
    ipaddress.ip_network(text)
    for text in ("169.254.0.0/16", "fe80::/10", "fd00:ec2::/32", "100.100.100.200/32")
)
_NUMBER = re.compile(r"0[xX][0-9a-fA-F]*|[0-9]+", re.ASCII)


def is_public(address: Address) -> bool:
    """Whether an address belongs to the public internet, in whichever form it is written."""
    if isinstance(address, ipaddress.IPv4Address):
        return not any(address in network for network in _REFUSED_V4)
    if address.ipv4_mapped is not None:
        return is_public(address.ipv4_mapped)
    if address in _NAT64:
        return is_public(ipaddress.IPv4Address(int(address) & 0xFFFFFFFF))
    return address in _GLOBAL_V6 and not any(address in network for network in _REFUSED_V6)


def is_guarded(address: Address) -> bool:
    """Whether only the literal address may open it, never a name: metadata servers."""
    address = _unmapped(address)
    return any(address in network for network in _LITERAL_ONLY)


def host_of(url: str) -> str:
    """The host of an address, in lower case and without a last dot."""
    return (urlsplit(url).hostname or "").rstrip(".")


def is_loopback(host: str) -> bool:
    """Whether a host is this machine by its very name or number."""
    address = written(host)
    return _is_localhost(host) or (address is not None and _unmapped(address).is_loopback)


def is_private(host: str) -> bool:
    """Whether a host is, by its very name or number, no place on the public internet.

    Other names are judged when they are resolved.
    """
    address = written(host)
    return _is_localhost(host) or (address is not None and not is_public(address))


def written(host: str) -> Address | None:
    """The address that a host is by itself, in any form that the C library reads; or ``None``."""
    try:
        return ipaddress.ip_address(host)
    except ValueError:
        return _number(host)


def _unmapped(address: Address) -> Address:
    if isinstance(address, ipaddress.IPv6Address):
        return address.ipv4_mapped or address
    return address


def _is_localhost(host: str) -> bool:
    return host == "localhost" or host.endswith(".localhost")


def _number(host: str) -> ipaddress.IPv4Address | None:
    """The address that the C library reads in ``2130706433``, ``0x7f.1`` or ``0177.0.0.1``."""
    parts = host.split(".")
    if len(parts) > 4 or not all(_NUMBER.fullmatch(part) for part in parts):
        return None
    try:
        *heads, last = [_octal_or_hex(part) for part in parts]
    except ValueError:
        return None
    if any(head > 255 for head in heads) or last >= 256 ** (4 - len(heads)):
        return None
    number = sum(head << (24 - 8 * place) for place, head in enumerate(heads)) + last
    return ipaddress.IPv4Address(number)


def _octal_or_hex(part: str) -> int:
    if part[:2].lower() == "0x":
        return int(part[2:] or "0", 16)
    return int(part, 8 if part.startswith("0") else 10)

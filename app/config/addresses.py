"""What an address written in the file says by itself; names are judged when they are resolved."""

from __future__ import annotations

import ipaddress
import re
from urllib.parse import urlsplit

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
_NUMBER = re.compile(r"0[xX][0-9a-fA-F]*|[0-9]+")


def host_of(url: str) -> str:
    """The host of an address, in lower case and without a last dot."""
    return (urlsplit(url).hostname or "").rstrip(".")


def is_loopback(host: str) -> bool:
    """Whether a host is this machine by its very name or number."""
    address = _address(host)
    return _is_localhost(host) or (address is not None and address.is_loopback)


def is_private(host: str) -> bool:
    """Whether a host is, by its very name or number, no place on the public internet."""
    address = _address(host)
    return _is_localhost(host) or (address is not None and not address.is_global)


def _is_localhost(host: str) -> bool:
    return host == "localhost" or host.endswith(".localhost")


def _address(host: str) -> Address | None:
    try:
        address: Address = ipaddress.ip_address(host)
    except ValueError:
        return _number(host)
    if isinstance(address, ipaddress.IPv6Address):
        return address.ipv4_mapped or address
    return address


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

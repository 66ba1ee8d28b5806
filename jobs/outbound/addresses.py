"""Which addresses a request may reach: public ones, and those that the configuration names."""

from __future__ import annotations

import ipaddress
import re
import socket
import threading
from collections.abc import Callable

import httpx

from domain.addresses import is_guarded, is_public
from jobs.tools import AddressRefused, Target

Resolve = Callable[[str, int], tuple[str, ...]]

_NUMERIC = re.compile(r"(0[xX][0-9a-fA-F]*|\d+)(\.(0[xX][0-9a-fA-F]*|\d+))*\.?", re.ASCII)
_DEFAULT_PORTS = {"http": 80, "https": 443}


def shown(url: str) -> str:
    """The address as people may see it: scheme, host and path; no query, no user."""
    try:
        parsed = httpx.URL(url)
    except (httpx.InvalidURL, ValueError, TypeError):
        return "(no valid address)"
    host = f"[{parsed.host}]" if ":" in parsed.host else parsed.host
    port = f":{parsed.port}" if parsed.port else ""
    return f"{parsed.scheme}://{host}{port}{parsed.path}"


def host_and_port(url: httpx.URL) -> tuple[str, int]:
    """The host in lower case without a closing dot, and the port, the scheme's own included."""
    return url.host.lower().rstrip("."), url.port or _DEFAULT_PORTS.get(url.scheme, 0)


def named_host(url: str) -> str:
    """Host and port as lists of hosts spell them; "" if the address is not valid."""
    parsed = parse(url)
    if isinstance(parsed, AddressRefused):
        return ""
    host, port = host_and_port(parsed)
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def is_named(host: str, port: int, entries: tuple[str, ...]) -> bool:
    """Whether "host" or "host:port" is among the entries."""
    spelled = f"[{host}]" if ":" in host else host
    wanted = {host, spelled, f"{spelled}:{port}"}
    return any(entry.lower() in wanted for entry in entries)


def parse(url: str) -> httpx.URL | AddressRefused:
    """The address if its form is one that may be requested at all."""
    try:
        parsed = httpx.URL(url)
    except (httpx.InvalidURL, ValueError, TypeError):
        return AddressRefused("not a valid address")
    if parsed.scheme not in _DEFAULT_PORTS:
        return AddressRefused(f"scheme {parsed.scheme or '(none)'}: only http and https")
    if parsed.userinfo:
        return AddressRefused("user and password in the address: use auth instead")
    host = parsed.host
    if not host or "%" in host or (parsed.port or 1) > 65535:
        return AddressRefused("no valid host")
    if _NUMERIC.fullmatch(host) and not _is_plain_v4(host):
        return AddressRefused("host is a number in an unusual form")
    return parsed


def refusal(url: str, target: Target, *, resolve: Resolve | None = None) -> AddressRefused | None:
    """Why this address would be refused; ``None`` if a request to it may be tried.

    Names that do not resolve now are judged when they are used.
    """
    parsed = parse(url)
    if isinstance(parsed, AddressRefused):
        return parsed
    host, port = host_and_port(parsed)
    try:
        found = (resolve or system_addresses)(host, port)
    except OSError:
        return None
    return check(host, port, found, target.private_hosts)


def check(
    host: str, port: int, addresses: tuple[str, ...], private_hosts: tuple[str, ...]
) -> AddressRefused | None:
    """Judge every address of a host: one that is refused refuses the host."""
    is_private_allowed = is_named(host, port, private_hosts)
    for text in addresses:
        address = ipaddress.ip_address(text.partition("%")[0])
        is_literal = str(address) == host
        if is_public(address) or (is_private_allowed and (is_literal or not is_guarded(address))):
            continue
        return AddressRefused(f"{host} is at an address that is not public")
    return None


def system_addresses(host: str, port: int) -> tuple[str, ...]:
    """The addresses that the system's resolver gives; raises OSError if there are none."""
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return tuple(dict.fromkeys(str(entry[4][0]) for entry in found))


class Resolver:
    """The system's resolver with a limit of time, which it does not have by itself."""

    def __init__(self, resolve: Resolve = system_addresses, *, at_once: int = 16) -> None:
        self._resolve = resolve
        self._free = threading.BoundedSemaphore(at_once)

    def addresses(self, host: str, port: int, *, timeout_s: float) -> tuple[str, ...]:
        """The addresses; raises OSError without any, TimeoutError when it takes too long."""
        if _is_literal(host):
            return (host,)
        if not self._free.acquire(timeout=timeout_s):
            raise TimeoutError("name resolution is busy")
        found: list[tuple[str, ...] | OSError] = []
        thread = threading.Thread(target=self._look_up, args=(host, port, found), daemon=True)
        thread.start()
        thread.join(timeout_s)
        if not found:
            raise TimeoutError("name resolution took too long")
        if isinstance(found[0], OSError):
            raise found[0]
        return found[0]

    def _look_up(self, host: str, port: int, found: list[tuple[str, ...] | OSError]) -> None:
        try:
            found.append(self._resolve(host, port))
        except (OSError, UnicodeError) as error:
            found.append(error if isinstance(error, OSError) else OSError("not a host name"))
        finally:
            self._free.release()


def _is_plain_v4(host: str) -> bool:
    try:
        return str(ipaddress.IPv4Address(host)) == host
    except ValueError:
        return False


def _is_literal(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True

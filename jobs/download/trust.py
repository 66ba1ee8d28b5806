"""Where bytes may be asked for, and who is given the credentials."""

from __future__ import annotations

import fnmatch

import httpx

from jobs.download.values import DownloadSettings
from jobs.outbound import host_and_port, is_named
from jobs.tools import Target


def target(settings: DownloadSettings) -> Target:
    """Whom requests may reach: private addresses only where a host is named without ``*``."""
    named = tuple(entry for entry in settings.hosts if "*" not in entry)
    given = settings.target
    return Target(named, given.ca_file, given.client_cert_file, given.client_key_file, given.proxy)


def is_source(settings: DownloadSettings, url: httpx.URL) -> bool:
    """Whether bytes may be asked for there to begin with."""
    host, port = host_and_port(url)
    return not settings.hosts or any(
        is_named(host, port, (entry,)) or _matches(entry.lower(), host, port)
        for entry in settings.hosts
    )


def is_trusted(settings: DownloadSettings, url: httpx.URL, first: httpx.URL) -> bool:
    """Whether the credentials go there: to the source's own origin, and to listed ports.

    A redirect to another origin takes them along only where that host and port are listed; an
    entry without a port means the scheme's own.
    """
    if not settings.hosts or url.scheme != first.scheme:
        return False
    if host_and_port(url) == host_and_port(first):
        return True
    is_own_port = url.port is None
    exact = tuple(e for e in settings.hosts if "*" not in e and (is_own_port or ":" in e))
    return is_named(*host_and_port(url), exact)


def _matches(entry: str, host: str, port: int) -> bool:
    names = (host, f"{host}:{port}")
    return "*" in entry and any(fnmatch.fnmatchcase(name, entry) for name in names)

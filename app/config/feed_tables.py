"""``[sources.NAME.changes]``: where a source is asked what changed, and how often at least."""

from __future__ import annotations

from urllib.parse import urlsplit

from app.config.table import SHORTEST_S, Table
from app.config.values import Changes, Download
from domain.feeds import FEEDS
from domain.profiles import Profile

_EVERY_S = 900.0
_HAVE = ", ".join(sorted(FEEDS))


def read_changes(table: Table, profile: Profile, download: Download) -> Changes | None:
    """The feed of a source; ``None`` where the configuration names none."""
    if not table.has("changes"):
        return None
    inner = table.table("changes")
    feed = FEEDS.get(profile.name)
    base = inner.text("base", feed.base if feed else "").rstrip("/")
    scope, every_s = inner.text("scope"), inner.seconds("every", _EVERY_S, least=SHORTEST_S)
    if feed is None:
        mend = f"remove the table, or use a profile with a change feed: {_HAVE}"
        inner.complain("base", f"means nothing: {profile.name} has no feed that we can read", mend)
        inner.finish()
        return None
    if feed.needs_scope and not scope:
        inner.complain("scope", "is missing: whose changes are asked for", feed.needs_scope)
    _check_base(inner, base, download)
    inner.finish()
    return Changes(feed, base, scope, every_s)


def _check_base(table: Table, base: str, download: Download) -> None:
    parts = urlsplit(base)
    host = parts.netloc
    if parts.scheme not in {"https", "http"} or not host or "@" in host:
        table.complain("base", "is no address", 'write it like "https://graph.microsoft.com"')
    elif host not in download.hosts:
        what = f"asks {host}, which is not among download.hosts, and would show it the credentials"
        table.complain("base", what, f'add "{host}" to hosts in the source\'s download table')

"""A source's download settings of the configuration, as an effect sees them."""

from __future__ import annotations

from app.clock import Clock
from app.config import Download
from jobs.download.fresh import asking
from jobs.download.values import DownloadSettings
from jobs.outbound import credentials_of
from jobs.tools import Http, Target


def settings_of(download: Download, *, http: Http, clock: Clock) -> DownloadSettings:
    """What fetching from this source needs; built once, it holds renewable credentials."""
    # The token service of a source on a private network stands on a listed host too.
    target = Target(tuple(entry for entry in download.hosts if "*" not in entry))
    credentials = credentials_of(download.auth, http=http, clock=clock, target=target)
    place, pointer = download.fresh_link, download.fresh_pointer
    fresh = asking(place, pointer, http=http, credentials=credentials, target=target)
    return DownloadSettings(
        download.hosts,
        credentials,
        download.max_size_bytes,
        download.timeout_s,
        download.min_rate_bytes_s,
        download.total_s,
        fresh_link=fresh if place else None,
        rewrites=download.rewrites,
        target=target,
    )

"""Download: an announced version's bytes, checked against the event, into the store of blobs."""

from __future__ import annotations

from jobs.download.attempt import download
from jobs.download.configured import settings_of
from jobs.download.values import Downloaded, DownloadedOutcome, DownloadJob, DownloadSettings

__all__ = [
    "DownloadJob",
    "DownloadSettings",
    "Downloaded",
    "DownloadedOutcome",
    "download",
    "settings_of",
]

"""What a download is told and what it tells."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from domain.outcomes import Again, Dead, Done
from jobs.outbound import Fixed
from jobs.tools import Credentials, Target


@dataclass(frozen=True, slots=True)
class DownloadSettings:
    """How a source's bytes are fetched.

    ``hosts`` are "host" or "host:port", with ``*`` for public names: where bytes may come from,
    and who is given the credentials. Empty: any public host, and nobody gets them. Private
    addresses only where a host is named without ``*``. ``fresh_link`` asks the source for a new
    address of the same version where links run out. ``rewrites``: this source changes files after
    announcing them, what comes is taken with a note.
    """

    hosts: tuple[str, ...] = ()
    credentials: Credentials = field(default_factory=Fixed)
    max_size_bytes: int = 5 << 30
    timeout_s: float = 60.0
    min_rate_bytes_s: int = 16 << 10
    total_s: float | None = None
    fresh_link: Callable[[DownloadJob], str | None] | None = field(default=None, repr=False)
    rewrites: bool = False
    target: Target = field(default_factory=Target)


@dataclass(frozen=True, slots=True)
class DownloadJob:
    """One version to fetch. ``attempt`` is the number of this try, all tries counted.

    What the event announced is optional: ``None`` or empty if it said nothing.
    """

    job_id: str
    source: str
    attempt: int
    file_id: str
    version: str
    name: str = field(repr=False)
    url: str = field(repr=False)
    settings: DownloadSettings = field(repr=False)
    size_bytes: int | None = None
    sha256: str = ""
    media_type: str = ""


@dataclass(frozen=True, slots=True)
class Downloaded:
    """The bytes are in the store. ``note`` is for people: what was odd and taken nevertheless."""

    sha256: str
    size_bytes: int
    media_type: str
    note: str = ""


DownloadedOutcome = Done[Downloaded] | Again | Dead

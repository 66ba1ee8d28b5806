"""What an effect holds: HTTP, blobs, a scratch folder, its progress, the clock. No database.

The shapes of outgoing HTTP stand here, so that effects and their peer know the same words; how
they are done stands in ``jobs.outbound``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from app.artifacts import Blobs
from app.clock import Clock

Header = tuple[str, str]


@dataclass(frozen=True, slots=True)
class Target:
    """Whom a request may reach, and how the peer is known.

    ``private_hosts`` are "host" or "host:port" whose private and loopback addresses are allowed;
    all other names must resolve to public ones. ``ca_file`` replaces the system's authorities.
    """

    private_hosts: tuple[str, ...] = ()
    ca_file: str = ""
    client_cert_file: str = ""
    client_key_file: str = ""
    proxy: str = field(default="", repr=False)


@dataclass(frozen=True, slots=True)
class Limits:
    """How long an exchange may take.

    ``total_s`` bounds the whole, whatever trickles; ``span_s`` the longest span that is slower
    than ``min_rate_bytes_s`` (0: the longest silence).
    """

    total_s: float | None
    span_s: float
    min_rate_bytes_s: int = 0
    connect_s: float = 10.0


@dataclass(frozen=True, slots=True)
class Upload:
    """A body too large to hold: its pieces, read once, are as long as ``size_bytes`` says."""

    pieces: Iterable[bytes]
    size_bytes: int


@dataclass(frozen=True, slots=True)
class Request:
    """One request. Its address and headers may hold secrets: they are not shown."""

    method: str
    url: str = field(repr=False)
    headers: tuple[Header, ...] = field(default=(), repr=False)
    body: bytes | Upload = field(default=b"", repr=False)


@dataclass(frozen=True, slots=True)
class AddressRefused:
    """Nothing was sent: the address is none that this request may reach."""

    reason: str


@dataclass(frozen=True, slots=True)
class CertificateTrouble:
    """Nothing was sent: the peer could not prove its name."""

    reason: str


@dataclass(frozen=True, slots=True)
class ConnectFailed:
    """Nothing was sent: no connection came about."""

    reason: str


@dataclass(frozen=True, slots=True)
class TimedOut:
    """A limit of time was reached; ``sent`` tells whether the whole request had left."""

    sent: bool


@dataclass(frozen=True, slots=True)
class Broken:
    """The connection or its protocol broke; ``sent`` tells whether the whole request had left."""

    sent: bool
    reason: str


@dataclass(frozen=True, slots=True)
class Stopped:
    """Our own side wanted to stop."""


@dataclass(frozen=True, slots=True)
class TooLarge:
    """The answer's body went past the limit; what lay below it was poured."""


@dataclass(frozen=True, slots=True)
class Garbled:
    """The answer's body came, and cannot be unpacked."""

    reason: str


@dataclass(frozen=True, slots=True)
class Whole:
    """The answer's body came completely."""


Trouble = AddressRefused | CertificateTrouble | ConnectFailed | TimedOut | Broken | Stopped
Poured = Whole | TooLarge | Garbled | TimedOut | Broken | Stopped


@dataclass(frozen=True, slots=True)
class Timing:
    """Where the time until an answer's head went; ``None`` what this connection had done before."""

    dns_ms: int | None = None
    connect_ms: int | None = None
    tls_ms: int | None = None
    first_byte_ms: int | None = None


class Answer(Protocol):
    """An answer whose body is still to be read."""

    @property
    def status(self) -> int: ...

    @property
    def timing(self) -> Timing:
        """``first_byte_ms`` counts from when the whole request had left."""
        ...

    @property
    def headers(self) -> tuple[Header, ...]:
        """Names in lower case, in the order of arrival."""
        ...

    def pour(self, sink: Callable[[bytes], object], *, limit_bytes: int) -> Poured:
        """Unpack the body into the sink, piece by piece; what the sink raises passes through."""
        ...


class Http(Protocol):
    """Outgoing HTTP: no redirect is followed, no cookie kept, no environment read."""

    @property
    def user_agent(self) -> str: ...

    def open(
        self, request: Request, *, target: Target, limits: Limits, pulse: Callable[[], bool]
    ) -> AbstractContextManager[Answer | Trouble]:
        """Send, and give the answer; ``pulse`` is called about once a second, false stops."""
        ...


@dataclass(frozen=True, slots=True)
class SignInFailed:
    """No credentials could be had; ``reason`` holds no secret."""

    reason: str


class Credentials(Protocol):
    """What proves us to a source or destination."""

    def headers(self) -> tuple[Header, ...] | SignInFailed:
        """The headers to send now."""
        ...

    def renewed(self, stale: tuple[Header, ...]) -> tuple[Header, ...] | SignInFailed | None:
        """Newer ones after the stale were refused, fetched once for all; ``None``: none exist."""
        ...


@dataclass(frozen=True, slots=True)
class Cancelled:
    """The work is no longer wanted."""

    reason: str = "cancelled"


# Called at least every 2 s with the bytes done and, where known, the total.
Progress = Callable[[int, int | None], Cancelled | None]


def no_progress(done_bytes: int, total_bytes: int | None) -> None:
    """Progress that nobody watches."""
    del done_bytes, total_bytes


@dataclass(frozen=True, slots=True)
class Tools:
    """What an effect holds. ``scratch`` is an own, empty folder that the caller removes."""

    http: Http
    blobs: Blobs
    scratch: Path
    clock: Clock
    progress: Progress = no_progress

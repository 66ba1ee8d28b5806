"""Values that must never be seen: they show where they come from, and nothing else."""

from __future__ import annotations

from dataclasses import dataclass, field
from urllib.parse import urlsplit


@dataclass(frozen=True, slots=True)
class Secret:
    """A secret and the reference (``env:NAME``) that named it; only ``reveal`` gives the value."""

    reference: str
    _value: str = field(repr=False)

    def reveal(self) -> str:
        """The value itself: for the one who signs, verifies or signs in with it."""
        return self._value

    def __str__(self) -> str:
        return self.reference


@dataclass(frozen=True, slots=True)
class SecretUrl:
    """An address that may hold a password or a token; shown without them."""

    _url: str = field(repr=False)

    def reveal(self) -> str:
        """The whole address: for the one who connects."""
        return self._url

    @property
    def scheme(self) -> str:
        """What stands before the first colon, in lower case."""
        return self._url.partition(":")[0].lower()

    @property
    def shown(self) -> str:
        """The address without user, password and query: fit for people and logs."""
        parts = urlsplit(self._url)
        host = parts.netloc.rpartition("@")[2]
        slashes = "//" if parts.netloc or "://" in self._url else ""
        return f"{parts.scheme}:{slashes}{host}{parts.path}"

    def __str__(self) -> str:
        return self.shown

    def __repr__(self) -> str:
        return f"SecretUrl({self.shown!r})"

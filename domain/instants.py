"""The moments that sources write down, read as instants in UTC or refused."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta, timezone

_RFC_3339 = re.compile(
    r"(\d{4})-(\d\d)-(\d\d)[Tt ](\d\d):(\d\d):(\d\d)(?:[.,](\d{1,12}))?"
    r"([Zz]|[+-]\d\d:?[0-5]\d)",
    re.ASCII,
)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
# Seconds reach this in the year 5138, milliseconds had it in 1973: the size tells which it is.
_FIRST_MILLISECONDS = 100_000_000_000
_LAST_MILLISECONDS = 253_402_300_799_999
_MAX_DIGITS = 15
_LEAP_SECOND = 60


def instant(value: object) -> datetime | None:
    """An RFC 3339 text with its zone, or Unix seconds or milliseconds; ``None``: no instant."""
    if isinstance(value, str):
        return from_text(value)
    if isinstance(value, int) and not isinstance(value, bool):
        return from_unix(value)
    return None


def from_unix(number: int) -> datetime | None:
    """Seconds or, told by its size, milliseconds since 1970."""
    if number < 0 or number > _LAST_MILLISECONDS:
        return None
    if number >= _FIRST_MILLISECONDS:
        return _EPOCH + timedelta(milliseconds=number)
    return _EPOCH + timedelta(seconds=number)


def from_digits(text: str) -> datetime | None:
    """Unix seconds or milliseconds as headers carry them: ASCII digits and nothing else."""
    if not (text.isascii() and text.isdecimal() and len(text) <= _MAX_DIGITS):
        return None
    return from_unix(int(text))


def from_text(text: str) -> datetime | None:
    """RFC 3339; fractions beyond a microsecond are cut, a leap second is the next second."""
    match = _RFC_3339.fullmatch(text)
    if match is None:
        return None
    year, month, day, hour, minute, second = (int(match[n]) for n in range(1, 7))
    leap = 1 if second == _LEAP_SECOND else 0
    micros = int((match[7] or "0")[:6].ljust(6, "0"))
    try:
        zone = timezone(_offset(match[8]))
        local = datetime(year, month, day, hour, minute, second - leap, micros, tzinfo=zone)
        return local.astimezone(UTC) + timedelta(seconds=leap)
    except (ValueError, OverflowError):
        return None


def _offset(zone: str) -> timedelta:
    if zone in {"Z", "z"}:
        return timedelta(0)
    size = timedelta(hours=int(zone[1:3]), minutes=int(zone[-2:]))
    return -size if zone[0] == "-" else size

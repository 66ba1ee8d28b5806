"""Values as people read them: sizes, spans, numbers, and names that could play tricks."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from urllib.parse import quote

_LONGEST_NAME = 120
_NAME_END = 20
_UNITS = ("bytes", "KiB", "MiB", "GiB", "TiB")
_STEPS = ((60.0, "s"), (60.0, "min"), (24.0, "h"), (365.0, "d"))
# Control characters, and those that turn the direction of what follows.
_TRICKS = re.compile(
    r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff]"
)


def clean(text: object) -> str:
    """The text without characters that are not seen or that turn others around."""
    return _TRICKS.sub("\ufffd", str(text))


def short(text: object) -> str:
    """A name as lists show it: of a very long one its beginning and its end."""
    name = clean(text)
    if len(name) <= _LONGEST_NAME:
        return name
    return f"{name[: _LONGEST_NAME - _NAME_END - 1]}…{name[-_NAME_END:]}"


def size(size_bytes: float | None) -> str:
    """A size in its largest unit."""
    if size_bytes is None:
        return ""
    value = float(size_bytes)
    for unit in _UNITS[:-1]:
        if value < 1024:
            return f"{value:.0f} {unit}" if unit == "bytes" else f"{value:.1f} {unit}"
        value /= 1024
    return f"{value:.1f} {_UNITS[-1]}"


def span(seconds: float) -> str:
    """A length of time in its largest unit."""
    value = float(seconds)
    for factor, unit in _STEPS:
        if value < factor:
            is_short = unit == "s" and 0 < value < 10
            return f"{value:.1f} {unit}" if is_short else f"{int(value)} {unit}"
        value /= factor
    return f"{value:.1f} y"


def number(value: float) -> str:
    """A number with narrow gaps between its thousands, which no language reads amiss."""
    whole = f"{value:,.1f}" if value % 1 else f"{int(value):,}"
    return whole.replace(",", "\u202f")


def milliseconds(stamp: str | None) -> int:
    """A time of the API in milliseconds since 1970; 0 for none."""
    if not stamp:
        return 0
    at = datetime.fromisoformat(stamp)
    return int((at if at.tzinfo else at.replace(tzinfo=UTC)).timestamp() * 1000)


def address(part: object) -> str:
    """A text as one part of an address."""
    return quote(str(part).encode("utf-8", "replace"), safe="")

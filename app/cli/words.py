"""Times, sizes and states in the words of a tired human."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, tzinfo

_STEPS = ((60.0, "s"), (60.0, "min"), (24.0, "h"), (365.0, "d"))
_LONGEST_NAME = 120
_NAME_END = 20
_UNITS = ("bytes", "KiB", "MiB", "GiB", "TiB")
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]")

STATES: Mapping[str, str] = {
    "ready": "queued",
    "pending": "queued",
    "waiting": "waits for its next try",
    "failed": "failed: needs a human",
    "dead": "gave up: needs a human",
    "unclear": "unclear: sent, no answer came",
    "held": "held: needs a human",
    "superseded": "superseded by a newer version",
    "skipped": "skipped: a newer one has overtaken it",
    "ignored": "ignored: nothing is configured for it",
    "stale": "stale: older than what is known",
    "deleted": "deleted at its source",
    "conflict": "conflict: other bytes under a known event",
    "duplicate": "repeat: answered with the first receipt",
    "rejected": "rejected: starts nothing",
}
OUTCOMES: Mapping[str, str] = {
    "again": "failed",
    "dead": "failed for good",
    "unclear": "sent, no answer came",
    "lost": "its worker died",
}
_STYLES: Mapping[str, str] = {
    **dict.fromkeys(
        ("failed", "dead", "held", "conflict", "unclear", "rejected", "lost"), "bold red"
    ),
    **dict.fromkeys(("waiting", "again", "open", "paused", "half-open"), "yellow"),
    **dict.fromkeys(("completed", "done", "delivered", "accepted", "processed"), "green"),
    **dict.fromkeys(("superseded", "skipped", "ignored", "stale", "deleted", "discarded"), "dim"),
    **dict.fromkeys(("running", "sending", "downloading", "transforming", "notifying"), "cyan"),
}


@dataclass(frozen=True, slots=True)
class Moment:
    """The present, and the zone in which times are shown; ``None`` is this machine's."""

    now: datetime
    zone: tzinfo | None = None

    def shown(self, stamp: str | None) -> str:
        """A time with its age: ``14:02:11 (3 min ago)``; the date where it is another day."""
        at = instant(stamp)
        if at is None:
            return "" if not stamp else clean(stamp)
        return f"{self.clock(at)} ({self.age(at)})"

    def clock(self, at: datetime) -> str:
        """A time without its age; the date where it is another day."""
        local, today = at.astimezone(self.zone), self.now.astimezone(self.zone)
        form = "%H:%M:%S" if local.date() == today.date() else "%Y-%m-%d %H:%M:%S"
        return local.strftime(form)

    def age(self, at: datetime) -> str:
        """How long ago, or in how long."""
        seconds = (self.now - at).total_seconds()
        return f"{span(seconds)} ago" if seconds >= 0 else f"in {span(-seconds)}"


def instant(stamp: str | None) -> datetime | None:
    """The time that the API gave; ``None`` for anything else."""
    try:
        at = datetime.fromisoformat(stamp or "")
    except ValueError:
        return None
    return at if at.tzinfo else at.replace(tzinfo=UTC)


def span(seconds: float) -> str:
    """A length of time in its largest unit: ``3 min``."""
    value = seconds
    for factor, unit in _STEPS:
        if value < factor:
            return f"{int(value)} {unit}"
        value /= factor
    return f"{value:.1f} y"


def size(count: float | None) -> str:
    """A number of bytes: ``47.1 KiB``."""
    if count is None:
        return ""
    value, place = float(count), 0
    while value >= 1024 and place < len(_UNITS) - 1:
        value, place = value / 1024, place + 1
    return f"{value:.0f} bytes" if place == 0 else f"{value:.1f} {_UNITS[place]}"


def state(word: str | None) -> str:
    """A state as people read it."""
    return STATES.get(word or "", word or "")


def style(word: str | None) -> str:
    """The colour of a state."""
    return _STYLES.get(word or "", "")


def clean(text: object) -> str:
    """A text from outside without what could move the cursor, forge a line or turn it round."""
    return _CONTROL.sub("\N{REPLACEMENT CHARACTER}", str(text)) if text is not None else ""


def short(text: object) -> str:
    """A name as lists show it: of a very long one its beginning and its end."""
    name = clean(text)
    if len(name) <= _LONGEST_NAME:
        return name
    return f"{name[: _LONGEST_NAME - _NAME_END - 1]}…{name[-_NAME_END:]}"


def counted(count: int, one: str, many: str = "") -> str:
    """``1 job``, ``2 jobs``."""
    return f"{count} {one if count == 1 else many or one + 's'}"

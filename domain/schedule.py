"""When a failed try is made again: exponential backoff with full jitter, and waits asked for.

The formula is "full jitter" of AWS ("Exponential Backoff And Jitter", Marc Brooker, 2015): the wait
is drawn evenly from nothing to the ceiling, which spreads a crowd that failed together best.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

LONGEST_ASKED_WAIT_S = 86_400.0
# A crowd that was told the same Retry-After must not come back in the same second.
ASKED_WAIT_SPREAD = 0.1


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """How patient we are: growth of the waits, and the limits that end the trying.

    ``attempts`` is the largest number of counted tries; ``None`` leaves only the window.
    """

    base_s: float = 2.0
    factor: float = 2.0
    cap_s: float = 3600.0
    window_s: float = 259_200.0
    attempts: int | None = None


@dataclass(frozen=True, slots=True)
class Tries:
    """What was tried so far: counted failures, the newest included, and when the work began."""

    counted: int
    first_at: datetime


def next_try(
    policy: RetryPolicy,
    tries: Tries,
    *,
    now: datetime,
    jitter: float,
    asked_wait_s: float | None = None,
) -> datetime | None:
    """When to try again; ``None`` gives up.

    ``jitter`` is a die from 0 to 1. A wait that the other side asked for is a minimum and replaces
    our own. The last try is at the window's end, or when an asked wait has passed.
    """
    deadline = tries.first_at + timedelta(seconds=policy.window_s)
    if now >= deadline or is_used_up(policy, tries.counted):
        return None
    if asked_wait_s is not None and asked_wait_s > 0:
        return now + timedelta(seconds=_asked(asked_wait_s, jitter))
    own = now + timedelta(seconds=ceiling_s(policy, tries.counted) * jitter)
    return min(own, deadline)


def is_used_up(policy: RetryPolicy, counted: int) -> bool:
    """Whether the policy allows no further counted try."""
    return policy.attempts is not None and counted >= policy.attempts


def ceiling_s(policy: RetryPolicy, counted: int) -> float:
    """The longest wait after so many counted failures, before the jitter shortens it."""
    wait_s = policy.base_s
    for _ in range(max(counted, 1) - 1):
        # Stepwise: the power of a patient sender's attempt number overflows a float.
        if wait_s >= policy.cap_s or policy.factor <= 1:
            break
        wait_s *= policy.factor
    return min(wait_s, policy.cap_s)


def retry_after(header: str, now: datetime) -> float | None:
    """The seconds that a Retry-After asks for, at most a day; ``None`` if it says nothing usable.

    Seconds and the three date forms of RFC 9110 are read; a date in the past is 0.
    """
    text = header.strip(" \t")
    if text.isascii() and text.isdigit():
        # Any number of digits: float() gives infinity where int() would raise.
        return min(float(text), LONGEST_ASKED_WAIT_S)
    at = _http_date(text, now)
    return None if at is None else min(max((at - now).total_seconds(), 0.0), LONGEST_ASKED_WAIT_S)


def _asked(asked_wait_s: float, jitter: float) -> float:
    return min(asked_wait_s, LONGEST_ASKED_WAIT_S) * (1 + ASKED_WAIT_SPREAD * jitter)


_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_TIME = r"(?P<hour>\d\d):(?P<minute>\d\d):(?P<second>\d\d)"
_FORMS = tuple(
    re.compile(form, re.ASCII)
    for form in (
        rf"[A-Z][a-z]{{2}}, (?P<day>\d\d) (?P<month>[A-Z][a-z]{{2}}) (?P<year>\d{{4}}) {_TIME} GMT",
        rf"[A-Z][a-z]+, (?P<day>\d\d)-(?P<month>[A-Z][a-z]{{2}})-(?P<year>\d\d) {_TIME} GMT",
        rf"[A-Z][a-z]{{2}} (?P<month>[A-Z][a-z]{{2}}) (?P<day>[ \d]\d) {_TIME} (?P<year>\d{{4}})",
    )
)


def _http_date(text: str, now: datetime) -> datetime | None:
    found = next((match for form in _FORMS if (match := form.fullmatch(text))), None)
    if found is None or found["month"] not in _MONTHS:
        return None
    month = _MONTHS.index(found["month"]) + 1
    year, day = _year(found["year"], now), int(found["day"])
    # 60 is a leap second, which datetime does not know.
    clock = (int(found["hour"]), int(found["minute"]), min(int(found["second"]), 59))
    try:
        return datetime(year, month, day, *clock, tzinfo=UTC)
    except ValueError:
        return None


def _year(digits: str, now: datetime) -> int:
    if len(digits) > len("26"):
        return int(digits)
    year = now.year - now.year % 100 + int(digits)
    # RFC 9110, 5.6.7: two digits that seem more than 50 years ahead mean the past century.
    return year - 100 if year > now.year + 50 else year

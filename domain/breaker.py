"""The circuit breaker of a source or destination, as a value: it learns results and says how many.

Closed lets all through. Open lets none through until its time; then exactly one probe may go
(half-open). A probe that succeeds starts a gradual return, each success doubling what may be in
flight; a failure on the way opens it again, for longer.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any, Literal, assert_never

UNLIMITED = 1_000_000
_BUCKETS = 6
# Above this many at once the return is over: real limits of concurrency lie below it.
_FULL_RETURN = 64
# How much longer than open_s a circuit stays open at most after failing probes.
_LONGEST_STRETCH = 16
_KEPT_TURNS = 20


@dataclass(frozen=True, slots=True)
class BreakerPolicy:
    """Opens after ``consecutive`` failures, or at a failure ``rate`` among ``minimum`` results."""

    consecutive: int = 5
    rate: float = 0.5
    minimum: int = 10
    window_s: float = 60.0
    open_s: float = 30.0


@dataclass(frozen=True, slots=True)
class Bucket:
    """The results of one slice of the window."""

    slice: int
    good: int = 0
    bad: int = 0


@dataclass(frozen=True, slots=True)
class Closed:
    """All may pass; what was seen lately decides how long."""

    in_a_row: int = 0
    buckets: tuple[Bucket, ...] = ()


@dataclass(frozen=True, slots=True)
class Open:
    """None may pass before ``until``; from then on one probe."""

    since: datetime
    until: datetime
    times: int = 1


@dataclass(frozen=True, slots=True)
class Returning:
    """A probe succeeded: at most ``limit`` may be in flight."""

    since: datetime
    limit: int = 2
    times: int = 1


Phase = Closed | Open | Returning
Word = Literal["closed", "open", "half-open", "returning"]


@dataclass(frozen=True, slots=True)
class Turn:
    """When the circuit went from one word to another."""

    at: datetime
    to: Word


@dataclass(frozen=True, slots=True)
class Breaker:
    """The circuit of one source or destination, and its latest turns, the oldest first."""

    policy: BreakerPolicy = BreakerPolicy()
    phase: Phase = Closed()
    turns: tuple[Turn, ...] = ()


def after(breaker: Breaker, success: bool, now: datetime) -> Breaker:  # noqa: FBT001 a result
    """The breaker after one more result. Results that come in while it is open change nothing."""
    learned = _after(breaker, success, now)
    to = word(learned, now)
    if to == _last_word(breaker):
        return replace(learned, turns=breaker.turns)
    return replace(learned, turns=(*breaker.turns, Turn(now, to))[-_KEPT_TURNS:])


def hastened(breaker: Breaker, now: datetime) -> Breaker:
    """An open breaker that lets its next probe through now; any other as it is."""
    if isinstance(breaker.phase, Open) and now < breaker.phase.until:
        return replace(breaker, phase=replace(breaker.phase, until=now))
    return breaker


def _last_word(breaker: Breaker) -> Word:
    """The word before a result came: a probe's begins while the circuit is open."""
    match breaker.phase:
        case Closed():
            return "closed"
        case Open():
            return "open"
        case Returning():
            return "returning"
        case _:
            assert_never(breaker.phase)


def _after(breaker: Breaker, success: bool, now: datetime) -> Breaker:  # noqa: FBT001 a result
    match breaker.phase:
        case Closed() as closed:
            return replace(breaker, phase=_after_closed(breaker.policy, closed, success, now))
        case Open() as opened if now < opened.until:
            # Tries that were under way when it opened: they tell of the time before.
            return breaker
        case Open() as opened:
            return replace(breaker, phase=_after_probe(breaker.policy, opened, success, now))
        case Returning() as returning:
            return replace(breaker, phase=_after_return(breaker.policy, returning, success, now))
        case _:
            assert_never(breaker.phase)


def allows(breaker: Breaker, now: datetime) -> int:
    """How many tries may be in flight now, those under way included."""
    match breaker.phase:
        case Closed():
            return UNLIMITED
        case Open(until=until):
            return 0 if now < until else 1
        case Returning(limit=limit):
            return limit
        case _:
            assert_never(breaker.phase)


def word(breaker: Breaker, now: datetime) -> Word:
    """What operators read."""
    match breaker.phase:
        case Closed():
            return "closed"
        case Open(until=until):
            return "open" if now < until else "half-open"
        case Returning():
            return "returning"
        case _:
            assert_never(breaker.phase)


def dump(breaker: Breaker) -> str:
    """The phase as text for a table; the policy comes from the configuration."""
    turns = [[turn.at.timestamp(), turn.to] for turn in breaker.turns]
    form = _form(breaker.phase) | ({"turns": turns} if turns else {})
    return json.dumps(form, separators=(",", ":"))


def load(policy: BreakerPolicy, text: str) -> Breaker:
    """The inverse of ``dump``, under the policy that holds now; empty text is a new circuit."""
    if not text:
        return Breaker(policy)
    form = json.loads(text)
    turns = tuple(Turn(datetime.fromtimestamp(at, UTC), to) for at, to in form.get("turns", ()))
    return Breaker(policy, _phase(form), turns)


def _phase(form: dict[str, Any]) -> Phase:
    if form["phase"] == "closed":
        return Closed(form["in_a_row"], tuple(Bucket(*each) for each in form["buckets"]))
    since = datetime.fromtimestamp(form["since"], UTC)
    if form["phase"] == "open":
        return Open(since, datetime.fromtimestamp(form["until"], UTC), form["times"])
    return Returning(since, form["limit"], form["times"])


def _form(phase: Phase) -> dict[str, object]:
    match phase:
        case Closed(in_a_row, buckets):
            told = [[b.slice, b.good, b.bad] for b in buckets]
            return {"phase": "closed", "in_a_row": in_a_row, "buckets": told}
        case Open(since, until, times):
            times_at = {"since": since.timestamp(), "until": until.timestamp()}
            return {"phase": "open", **times_at, "times": times}
        case Returning(since, limit, times):
            return {
                "phase": "returning",
                "since": since.timestamp(),
                "limit": limit,
                "times": times,
            }
        case _:
            assert_never(phase)


def _after_closed(policy: BreakerPolicy, closed: Closed, success: bool, now: datetime) -> Phase:  # noqa: FBT001 a result
    buckets = _counted(policy, closed.buckets, success, now)
    in_a_row = 0 if success else closed.in_a_row + 1
    bad, total = sum(b.bad for b in buckets), sum(b.good + b.bad for b in buckets)
    is_often = total >= policy.minimum and bad >= policy.rate * total
    if not success and (in_a_row >= policy.consecutive or is_often):
        return _opened(policy, since=now, now=now, times=1)
    return Closed(in_a_row, buckets)


def _after_probe(policy: BreakerPolicy, opened: Open, success: bool, now: datetime) -> Phase:  # noqa: FBT001 a result
    if success:
        return Returning(opened.since, times=opened.times)
    return _opened(policy, since=opened.since, now=now, times=opened.times + 1)


def _after_return(policy: BreakerPolicy, phase: Returning, success: bool, now: datetime) -> Phase:  # noqa: FBT001 a result
    if not success:
        return _opened(policy, since=phase.since, now=now, times=phase.times + 1)
    limit = phase.limit * 2
    return Closed() if limit > _FULL_RETURN else replace(phase, limit=limit)


def _opened(policy: BreakerPolicy, *, since: datetime, now: datetime, times: int) -> Open:
    stretch = min(2 ** min(times - 1, 30), _LONGEST_STRETCH)
    return Open(since, now + timedelta(seconds=policy.open_s * stretch), times)


def _counted(
    policy: BreakerPolicy,
    buckets: tuple[Bucket, ...],
    success: bool,  # noqa: FBT001 a result
    now: datetime,
) -> tuple[Bucket, ...]:
    present = int(now.timestamp() * _BUCKETS // policy.window_s)
    kept = tuple(b for b in buckets if present - _BUCKETS < b.slice < present)
    newest = next((b for b in buckets if b.slice == present), Bucket(present))
    good, bad = newest.good + success, newest.bad + (not success)
    return (*kept, Bucket(present, good, bad))

"""The only clock and the only dice: all else is told the time and the chance."""

from __future__ import annotations

import random
import secrets
import threading
import time
from datetime import UTC, datetime, timedelta
from typing import Protocol

_SALT_BYTES = 16
_LOOK_AGAIN_S = 0.002


class Clock(Protocol):
    """Tells the time, and waits."""

    def now(self) -> datetime:
        """The present, aware, in UTC."""
        ...

    def monotonic(self) -> float:
        """Seconds that never run backwards: for spans, not for dates."""
        ...

    def wait(self, event: threading.Event, seconds: float) -> bool:
        """Wait until the event is set or the time has passed; whether it is set."""
        ...


class Dice(Protocol):
    """Chance."""

    def salt(self) -> bytes:
        """16 bytes that nobody can guess."""
        ...

    def jitter(self) -> float:
        """From 0 up to 1, 1 excluded."""
        ...


class SystemClock:
    """The clock of the machine."""

    def now(self) -> datetime:
        """The present, aware, in UTC."""
        return datetime.now(UTC)

    def monotonic(self) -> float:
        """Seconds since some moment of this machine."""
        return time.monotonic()

    def wait(self, event: threading.Event, seconds: float) -> bool:
        """Wait until the event is set or the time has passed; whether it is set."""
        return event.wait(max(seconds, 0.0))


class SystemDice:
    """The chance of the machine."""

    def salt(self) -> bytes:
        """16 bytes from the system's generator."""
        return secrets.token_bytes(_SALT_BYTES)

    def jitter(self) -> float:
        """From 0 up to 1, 1 excluded."""
        return random.random()


class SettableClock:
    """A clock that stands still until it is told to move; waiting on it costs no time."""

    def __init__(self, now: datetime) -> None:
        self._now = now
        self._monotonic = 0.0
        self._lock = threading.Lock()

    def now(self) -> datetime:
        """The time that was set."""
        with self._lock:
            return self._now

    def monotonic(self) -> float:
        """The seconds that the clock was moved by since it was made."""
        with self._lock:
            return self._monotonic

    def advance(self, seconds: float) -> None:
        """Let time pass, both the date and the spans."""
        with self._lock:
            self._now += timedelta(seconds=seconds)
            self._monotonic += seconds

    def wait(self, event: threading.Event, seconds: float) -> bool:
        """Wait until the event is set or the clock was moved far enough; whether it is set."""
        end = self.monotonic() + seconds
        while self.monotonic() < end:
            if event.wait(_LOOK_AGAIN_S):
                return True
        return event.is_set()


class SeededDice:
    """Chance that repeats itself: the same seed throws the same."""

    def __init__(self, seed: int = 0) -> None:
        self._random = random.Random(seed)

    def salt(self) -> bytes:
        """The next 16 bytes of the sequence."""
        return self._random.randbytes(_SALT_BYTES)

    def jitter(self) -> float:
        """The next number of the sequence."""
        return self._random.random()

"""One life of the program on its scratch configuration, with the trouble that was planned for it.

It is the composed program as ``run`` has it. The clock, the broker inside the process and the
store's connections are those of this module; nothing of it can be switched on in ``run``.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from app.cli.stopping import stopped
from app.cli.torture.places import Places
from app.cli.torture.standins import in_scratch
from app.clock import Clock, Dice, SeededDice, SystemClock
from app.compose import Refused, compose_run
from app.config import Config, load, process_environment
from app.store.errors import StoreError
from app.store.faults import Trouble, trouble
from app.telemetry import configure_logs
from jobs.broker import LocalBroker
from jobs.relay import FORGOTTEN_S

WRONG, FAILED = 2, 1
_FAILS_FOR_CALLS = 60
_FULL_TIMES = 3
_LOST, _DOUBLED, _LATE = 0.1, 0.35, 0.6
_LATEST_S = 0.2
_MOST_LOST = 2


@dataclass(frozen=True, slots=True)
class Plan:
    """What a life is told: its configuration and places, and what is to go wrong."""

    config: str
    folder: str
    port: int
    outside: str
    secret: str
    seed: int = 0
    skew_s: float = 0.0
    wakeups: bool = False
    database: str = ""
    at_call: int = 0

    @property
    def places(self) -> Places:
        """Where all of it is."""
        return Places(Path(self.folder), self.port, self.outside, self.secret)


def live(plan: Mapping[str, Any]) -> int:
    """Live until a signal comes or the plan's trouble ends it; the exit status."""
    told = Plan(**plan)
    config = load(Path(told.config), process_environment())
    if not isinstance(config, Config):
        return WRONG
    clock = SkewedClock(SystemClock(), told.skew_s)
    configure_logs(sys.stderr, clock=clock, as_json=True)
    ended = threading.Event()
    with stopped(ended):
        try:
            return _lived(in_scratch(config, told.places), told, clock, ended)
        except StoreError as error:
            print(f"the store cannot be used: {error}", file=sys.stderr)
            return FAILED


def _lived(config: Config, plan: Plan, clock: SkewedClock, ended: threading.Event) -> int:
    dice = SeededDice(plan.seed)
    broker = UnreliableBroker(dice, clock.leap) if plan.wakeups else None
    process = compose_run(config, clock=clock, broker=broker)
    if isinstance(process, Refused):
        print(*process.problems, sep="\n", file=sys.stderr)
        return WRONG
    try:
        process.start()
        if plan.database == "fails":
            trouble(process.base.store, Trouble(plan.at_call, _FAILS_FOR_CALLS))
        if plan.database == "full":
            trouble(process.base.store, Trouble(full_times=_FULL_TIMES))
        ended.wait()
    finally:
        process.stop()
    return 0


class SkewedClock:
    """A clock that is wrong by so much, and that can leap as after a sleep of the machine."""

    def __init__(self, clock: Clock, skew_s: float) -> None:
        self._clock, self._skew = clock, timedelta(seconds=skew_s)
        self._leapt_s = 0.0

    def now(self) -> datetime:
        """The wrong time."""
        return self._clock.now() + self._skew

    def monotonic(self) -> float:
        """Seconds of this machine, and those that were leapt over."""
        return self._clock.monotonic() + self._leapt_s

    def wait(self, event: threading.Event, seconds: float) -> bool:
        """Wait until the event is set or the time has passed; whether it is set."""
        return self._clock.wait(event, seconds)

    def leap(self) -> None:
        """Let the time pass after which a wake-up that nobody answers is taken for lost."""
        self._leapt_s += FORGOTTEN_S + 1.0


class UnreliableBroker(LocalBroker):
    """Loses a few wake-ups, doubles some, delivers some late and so out of their order."""

    def __init__(self, dice: Dice, lost: Callable[[], None]) -> None:
        super().__init__()
        self._dice, self._lost = dice, lost
        self._left = _MOST_LOST

    def enqueue(self, message: Any, *, delay: int | None = None) -> Any:
        """Let it wait, or not, or twice, or later."""
        throw = self._dice.jitter()
        if throw < _LOST and self._left:
            self._left -= 1
            self._lost()
        elif throw < _DOUBLED:
            super().enqueue(message, delay=delay)
            self._later(message)
        elif throw < _LATE:
            self._later(message)
        else:
            super().enqueue(message, delay=delay)
        return message

    def _later(self, message: Any) -> None:
        timer = threading.Timer(self._dice.jitter() * _LATEST_S, super().enqueue, (message,))
        timer.daemon = True
        timer.start()

"""Processes of the program, started within a moment and killed without a warning."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import IO, Any, cast

from app.cli.demo.installation import search_path
from app.clock import Clock, SystemClock

KILLED = -int(signal.SIGKILL)
LOOK_S = 0.02
_NEVER = threading.Event()
_LONGEST_END_S = 60


class ProcessError(Exception):
    """What starts the processes is gone."""


class Zygote:
    """Starts processes of the program within a moment; see ``app.cli.torture.zygote``."""

    def __init__(self, environ: Mapping[str, str]) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "app.cli.torture.zygote"],
            env={**environ, "PYTHONPATH": search_path(environ)},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self._lock = threading.Lock()
        if self._answer() != "ready":
            raise ProcessError("the processes cannot be started")

    def order(self, order: Mapping[str, Any]) -> Started:
        """Start what the order says; see ``app.cli.torture.zygote.become``."""
        return Started(int(self._ask(order)), self)

    def poll(self, pid: int) -> int | None:
        """How it ended; ``None`` while it runs."""
        found: int | None = self._ask({"pid": pid})
        return found

    def close(self) -> None:
        """End the zygote, and all that it started."""
        told, said = self._pipes
        told.close()
        self._process.wait(_LONGEST_END_S)
        said.close()

    @property
    def _pipes(self) -> tuple[IO[str], IO[str]]:
        return cast("IO[str]", self._process.stdin), cast("IO[str]", self._process.stdout)

    def _ask(self, order: Mapping[str, Any]) -> Any:
        told, _ = self._pipes
        with self._lock:
            told.write(json.dumps(order) + "\n")
            told.flush()
            return json.loads(self._answer())

    def _answer(self) -> str:
        _, said = self._pipes
        return said.readline().strip()


@dataclass
class Started:
    """A process that was started; ``code`` is how it ended."""

    pid: int
    zygote: Zygote
    code: int | None = None

    def is_over(self) -> bool:
        """Whether it has ended."""
        if self.code is None:
            self.code = self.zygote.poll(self.pid)
        return self.code is not None

    def ask(self, number: signal.Signals) -> None:
        """Send it a signal if it runs."""
        if not self.is_over():
            os.kill(self.pid, number)


def until(condition: Callable[[], bool], *, within_s: float, clock: Clock | None = None) -> bool:
    """Wait until the condition holds, for so long; whether it came about."""
    clock = clock or SystemClock()
    ends_s = clock.monotonic() + within_s
    while not condition():
        if clock.monotonic() > ends_s:
            return False
        clock.wait(_NEVER, LOOK_S)
    return True

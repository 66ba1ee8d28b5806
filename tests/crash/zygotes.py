"""Processes of the program, started within a moment and killed without a warning."""

from __future__ import annotations

import atexit
import base64
import functools
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
SECRET = "whsec_" + base64.b64encode(b"k" * 32).decode()
KILLED = -int(signal.SIGKILL)
NEVER = threading.Event()
LOOK_S = 0.01
PATIENCE_S = 60.0


@functools.cache
def shared_zygote() -> Zygote:
    """The one of this test process, started when it is first wanted."""
    zygote = Zygote()
    atexit.register(zygote.close)
    return zygote


class Zygote:
    """Starts processes of the program within a moment; see ``tests.crash.zygote``."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.crash.zygote"],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self._lock = threading.Lock()
        assert self._answer() == "ready"

    def start(self, folder: Path, command: str = "run", **environ: str) -> Started:
        """Start a command in this folder."""
        argv = [command, "-c", str(folder / "laufzettel.toml")]
        inherited = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}
        environ = {**inherited, "SECRET": SECRET, **environ}
        return self.order({"argv": argv, "environ": environ, "log": str(folder / "run.log")})

    def order(self, order: dict[str, Any]) -> Started:
        """Start what the order says; see ``tests.crash.zygote.become``."""
        pid = self._ask(order)
        assert isinstance(pid, int)
        return Started(pid, self)

    def poll(self, pid: int) -> int | None:
        """How it ended; ``None`` while it runs."""
        found: int | None = self._ask({"pid": pid})
        return found

    def close(self) -> None:
        """End the zygote."""
        assert self._process.stdin
        self._process.stdin.close()
        self._process.wait(60)
        assert self._process.stdout
        self._process.stdout.close()

    def _ask(self, order: dict[str, Any]) -> Any:
        assert self._process.stdin
        with self._lock:
            self._process.stdin.write(json.dumps(order) + "\n")
            self._process.stdin.flush()
            return json.loads(self._answer())

    def _answer(self) -> str:
        assert self._process.stdout
        return self._process.stdout.readline().strip()


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

    def wait(self) -> int:
        """Wait for its end, and say how it was."""
        until(self.is_over)
        assert self.code is not None
        return self.code

    def end(self, number: signal.Signals) -> int:
        """Send it a signal, wait for its end, and say how it was."""
        self.ask(number)
        return self.wait()


def until(condition: Callable[[], bool], *, within_s: float = PATIENCE_S) -> None:
    """Wait until the condition holds; fails after a while."""
    ends = time.monotonic() + within_s
    while not condition():
        assert time.monotonic() < ends, "it did not come about"
        NEVER.wait(LOOK_S)

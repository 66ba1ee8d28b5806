"""The product's quick processes, with what tests want around them."""

from __future__ import annotations

import atexit
import base64
import functools
import os
import signal
import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from app.cli.torture import processes
from app.cli.torture.processes import KILLED

__all__ = ["KILLED", "NEVER", "ROOT", "SECRET", "Started", "Zygote", "shared_zygote", "until"]

ROOT = Path(__file__).parents[2]
SECRET = "whsec_" + base64.b64encode(b"k" * 32).decode()
NEVER = threading.Event()
PATIENCE_S = 60.0


@functools.cache
def shared_zygote() -> Zygote:
    """The one of this test process, started when it is first wanted."""
    zygote = Zygote(dict(os.environ))
    atexit.register(zygote.close)
    return zygote


class Zygote(processes.Zygote):
    """Starts commands in a folder."""

    def start(self, folder: Path, command: str = "run", **environ: str) -> Started:
        """Start a command in this folder."""
        argv = [command, "-c", str(folder / "laufzettel.toml")]
        inherited = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}
        environ = {**inherited, "SECRET": SECRET, **environ}
        return self.order({"argv": argv, "environ": environ, "log": str(folder / "run.log")})

    def order(self, order: Any) -> Started:
        """Start what the order says."""
        return Started(super().order(order).pid, self)


@dataclass
class Started(processes.Started):
    """A process that was started; ``code`` is how it ended."""

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
    assert processes.until(condition, within_s=within_s), "it did not come about"

"""Several processes of one kind under one that starts them, replaces the dead, and ends them.

Each member is told to end by its standard input coming to an end, so none outlives its starter,
however that one dies.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Sequence
from dataclasses import dataclass, field

from app.cli.screen import WRONG
from app.clock import Clock

READY = b"ready\n"
_LOOK_S = 0.1
# A member that dies at once is not started again and again without a breath.
_BREATH_S = 1.0
_READY_S = 60.0
_GRACE_S = 45.0


@dataclass(slots=True)
class Member:
    """One process, and whether it has said that it is ready."""

    process: subprocess.Popen[bytes]
    ready: threading.Event = field(default_factory=threading.Event)

    def hear(self) -> None:
        """Wait for the member's word; to be run in a thread of its own."""
        if self.process.stdout is not None and self.process.stdout.readline() == READY:
            self.ready.set()

    def end(self) -> None:
        """Ask the member to end in order."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)

    def await_end(self) -> int:
        """Wait until it has ended, for as long as a graceful end may take."""
        try:
            return self.process.wait(_GRACE_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            return self.process.wait()


class Crew:
    """Keeps ``count`` members at work until it is told to end."""

    def __init__(self, command: Sequence[str], count: int, clock: Clock) -> None:
        self._command = command
        self._count = count
        self._clock = clock
        self._members: list[Member] = []

    def work(self, ended: threading.Event, renewed: threading.Event) -> int:
        """Return the exit status once ``ended`` is set and all members are gone.

        With ``renewed`` each member is replaced, one after the other, each by one that is ready.
        A member that refuses to start ends the whole crew with its status.
        """
        self._members = [self._started() for _ in range(self._count)]
        status = 0
        while not ended.is_set() and status == 0:
            if renewed.is_set():
                renewed.clear()
                self._renew(ended)
            status = self._look(ended)
        for member in self._members:
            member.end()
        for member in self._members:
            member.await_end()
        return status

    def _look(self, ended: threading.Event) -> int:
        """Replace the dead; gives the status of one that refused to start, else 0."""
        self._clock.wait(ended, _LOOK_S)
        for place, member in enumerate(self._members):
            status = member.process.poll()
            if status is None or ended.is_set():
                continue
            if status == WRONG and not member.ready.is_set():
                return status
            self._clock.wait(ended, _BREATH_S)
            self._members[place] = self._started()
        return 0

    def _renew(self, ended: threading.Event) -> None:
        for place, old in enumerate(self._members):
            fresh = self._started()
            self._members[place] = fresh
            ends_s = self._clock.monotonic() + _READY_S
            while not fresh.ready.is_set() and self._clock.monotonic() < ends_s:
                if ended.is_set() or fresh.process.poll() is not None:
                    break
                self._clock.wait(ended, _LOOK_S)
            old.end()
            old.await_end()

    def _started(self) -> Member:
        member = Member(
            subprocess.Popen(self._command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        )
        threading.Thread(target=member.hear, daemon=True).start()
        return member


def say_ready() -> None:
    """Tell the one who started this process that it takes its part now."""
    sys.stdout.buffer.write(READY)
    sys.stdout.flush()


def watch_starter(ended: threading.Event) -> None:
    """Set the event as soon as the one who started this process is gone."""

    def watch() -> None:
        # Past sys.stdin: its lock, held here for ever, would make the end of the process fail.
        while os.read(0, 1):
            pass
        ended.set()

    threading.Thread(target=watch, name="starter", daemon=True).start()

"""Foreign code and hostile files in child processes that can be killed without harm.

Each task is a fresh process, forked by a warden that has the libraries loaded: a warm start costs
a few milliseconds, and nothing of one file is left when the next one comes.
"""

from __future__ import annotations

import contextlib
import json
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Literal

from jobs.sandbox import frames
from jobs.sandbox.limits import MIB, Limits, to_wire
from jobs.sandbox.task import ANSWER_LIMIT_BYTES

__all__ = ["MIB", "Answered", "Crashed", "Ended", "Limits", "Lost", "Overrun", "Sandbox"]

_START_TIMEOUT_S = 30.0
_GRACE_S = 5.0
_WARDEN = (
    "import sys, json; sys.path[:] = json.loads(sys.argv[1]); "
    "from jobs.sandbox.warden import main; main(**json.loads(sys.argv[2]))"
)


@dataclass(frozen=True, slots=True)
class Answered:
    """The task ended well and says this. Foreign code may have written it: check it."""

    value: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Overrun:
    """The task passed a limit and was killed with all its children."""

    limit: Literal["wall", "cpu", "memory", "output"]


@dataclass(frozen=True, slots=True)
class Crashed:
    """The task died or failed by itself; ``how`` names the signal or the defect."""

    how: str


@dataclass(frozen=True, slots=True)
class Lost:
    """The sandbox itself was lost or closed under the task; that says nothing about the task."""


Ended = Answered | Overrun | Crashed | Lost


class Sandbox:
    """Runs tasks under limits, at most ``slots`` at once; safe to use from many threads.

    ``modules`` are imported once, before the first task, so that no task pays for them.
    ``isolate`` false does without namespaces, as happens by itself where the kernel refuses them.
    """

    def __init__(self, *, slots: int, modules: Sequence[str] = (), isolate: bool = True) -> None:
        self._slots = threading.BoundedSemaphore(slots)
        self._modules = tuple(modules)
        self._isolate = isolate
        self._lock = threading.Lock()
        self._warden: _Warden | None = None
        self._is_closed = False

    @property
    def is_isolated(self) -> bool:
        """Whether the kernel grants tasks a network and a process namespace of their own."""
        warden = self._current()
        return warden is not None and warden.is_isolated

    def run(
        self, target: str, arguments: Mapping[str, Any], *, folder: Path, limits: Limits
    ) -> Ended:
        """Call ``module:function`` with ``arguments`` in a child whose only place is ``folder``.

        The call ends at the latest shortly after ``limits.wall_s``, and nothing that the task
        started is left then.
        """
        request = {
            "target": target,
            "arguments": arguments,
            "folder": str(folder.resolve()),
            "limits": to_wire(limits),
        }
        with self._slots, tempfile.TemporaryFile() as answer:
            for _ in range(2):
                if (warden := self._current()) is None:
                    return Lost()
                if (line := warden.begin(request, answer.fileno())) is not None:
                    return self._await(warden, line, answer, limits)
                self._drop(warden)
            return Lost()

    def close(self) -> None:
        """Kill what runs, with all its children, and take no more."""
        with self._lock:
            self._is_closed = True
            warden, self._warden = self._warden, None
        if warden is not None:
            warden.close()

    def _current(self) -> _Warden | None:
        with self._lock:
            if self._warden is None and not self._is_closed:
                self._warden = _Warden.start(self._modules, isolate=self._isolate)
            return self._warden

    def _drop(self, warden: _Warden) -> None:
        with self._lock:
            if self._warden is warden:
                self._warden = None
        warden.close()

    def _await(
        self, warden: _Warden, line: socket.socket, answer: IO[bytes], limits: Limits
    ) -> Ended:
        with line:
            line.settimeout(limits.wall_s + _GRACE_S)
            try:
                ended = frames.receive(line)
            except (TimeoutError, frames.FrameError):
                ended = None
        if ended is None:
            self._drop(warden)
            return Lost()
        return _judge(ended[0], answer, limits)


class _Warden:
    def __init__(self, process: subprocess.Popen[bytes], control: socket.socket) -> None:
        self._process = process
        self._control = control
        self._lock = threading.Lock()
        self.is_isolated = False

    @classmethod
    def start(cls, modules: Sequence[str], *, isolate: bool) -> _Warden:
        """Start a fresh interpreter with an empty environment; it inherits one socket."""
        ours, theirs = socket.socketpair()
        with theirs:
            told = {"control_fd": theirs.fileno(), "modules": list(modules), "isolate": isolate}
            argv = [sys.executable, "-I", "-c", _WARDEN, json.dumps(_import_path())]
            process = subprocess.Popen(
                [*argv, json.dumps(told)],
                env={"LC_ALL": "C.UTF-8", "PATH": "/usr/local/bin:/usr/bin:/bin"},
                stdin=subprocess.DEVNULL,
                pass_fds=[theirs.fileno()],
                cwd="/",
                start_new_session=True,
            )
        warden = cls(process, ours)
        ours.settimeout(_START_TIMEOUT_S)
        if (hello := frames.receive(ours)) is None:
            warden.close()
            raise RuntimeError("the warden of the sandbox did not start")
        ours.settimeout(None)
        warden.is_isolated = bool(hello[0]["isolated"])
        return warden

    def begin(self, request: Mapping[str, Any], answer_fd: int) -> socket.socket | None:
        """Hand a task over; ``None`` if the warden is gone and the task never began."""
        ours, theirs = socket.socketpair()
        with theirs, self._lock:
            try:
                frames.send(self._control, request, fds=[theirs.fileno(), answer_fd])
            except OSError:
                ours.close()
                return None
        return ours

    def close(self) -> None:
        """End the warden and every task of it; returns when they are gone."""
        with contextlib.suppress(OSError):
            self._control.shutdown(socket.SHUT_RDWR)
        try:
            self._process.wait(timeout=_GRACE_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._control.close()


def _import_path() -> list[str]:
    root = str(Path(__file__).resolve().parents[2])
    return [root, *(str(Path(entry).resolve()) for entry in sys.path if entry)]


def _judge(ended: Mapping[str, Any], answer: IO[bytes], limits: Limits) -> Ended:
    match ended["cause"], ended["code"]:
        case ("wall" | "cpu" | "output") as limit, _:
            return Overrun(limit=limit)
        case _, 0:
            return _read(answer)
        case _, code:
            # Native code answers a refused allocation by aborting, in several ways.
            if ended["peak_bytes"] >= limits.memory_bytes * 0.6:
                return Overrun(limit="memory")
            return Crashed(how=f"signal {-code}" if code < 0 else f"exit status {code}")


def _read(answer: IO[bytes]) -> Ended:
    answer.seek(0)
    try:
        said = json.loads(answer.read(ANSWER_LIMIT_BYTES + 1))
    except ValueError:
        return Crashed(how="no answer")
    match said:
        case {"answer": dict(value)}:
            return Answered(value=value)
        case {"memory": True}:
            return Overrun(limit="memory")
        case {"defect": str(defect)}:
            return Crashed(how=defect[:200])
        case _:
            return Crashed(how="no answer")

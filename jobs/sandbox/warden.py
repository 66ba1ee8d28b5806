"""The warden: a small process that forks one child a task, watches it, and kills it with its kin.

It holds nothing of the worker: it was started fresh, with an empty environment, and gets tasks over
a socket. When that socket ends, however the worker died, every task is killed and the warden ends.
Where the kernel allows it lives in namespaces of its own: without network, and as the first process
of a process namespace, so that nothing it ever started can outlive it.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import os
import selectors
import signal
import socket
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

from jobs.sandbox import frames, kernel
from jobs.sandbox.limits import Limits, from_wire
from jobs.sandbox.task import be_task

_LOOK_EVERY_S = 0.25
# The kernel's two ways of counting a process's time differ by this much.
_TICK_S = 0.2


@dataclass(slots=True)
class _Task:
    pid: int
    line: socket.socket
    folder: Path
    limits: Limits
    deadline: float
    cause: str = ""


def main(*, control_fd: int, modules: list[str], isolate: bool) -> NoReturn:
    """Serve the worker at the other end of ``control_fd`` until it is gone."""
    with contextlib.suppress(OSError):
        os.setsid()
    uid, gid = os.getuid(), os.getgid()
    apart = isolate and kernel.unshare(kernel.NEW_USER | kernel.NEW_NET | kernel.NEW_PID)
    if apart:
        kernel.keep_identity(uid, gid)
        if (pid := os.fork()) != 0:
            os.close(control_fd)
            os.waitpid(pid, 0)
            os._exit(0)
        kernel.die_with_parent()
    _serve(socket.socket(fileno=control_fd), modules, apart=apart)


def _serve(control: socket.socket, modules: list[str], *, apart: bool) -> NoReturn:
    kernel.adopt_orphans()
    for module in modules:
        with contextlib.suppress(ImportError):
            importlib.import_module(module)
    gc.collect()
    gc.freeze()
    try:
        frames.send(control, {"isolated": apart})
    except OSError:
        os._exit(0)  # the worker has died meanwhile: there is nobody to serve
    warden = _Warden(control, apart=apart)
    try:
        while warden.turn():
            pass
    finally:
        warden.kill_all()
        os._exit(0)


class _Warden:
    def __init__(self, control: socket.socket, *, apart: bool) -> None:
        self._control = control
        self._apart = apart
        self._own_pids = os.open("/proc/self/ns/pid", os.O_RDONLY) if apart else -1
        self._tasks: dict[int, _Task] = {}
        self._selector = selectors.DefaultSelector()
        self._selector.register(control, selectors.EVENT_READ)
        woken, wake = socket.socketpair()
        for end in (woken, wake):
            end.settimeout(0)
        self._woken, self._wake = woken, wake
        signal.set_wakeup_fd(wake.fileno(), warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        self._selector.register(woken, selectors.EVENT_READ)

    def turn(self) -> bool:
        """Handle what happened; false when the worker is gone."""
        for key, _ in self._selector.select(self._patience_s()):
            if key.fileobj is self._control:
                if (received := frames.receive(self._control)) is None:
                    return False
                self._start(*received)
            elif key.fileobj is self._woken:
                with contextlib.suppress(BlockingIOError):
                    self._woken.recv(4096)
            else:
                self._leave(key.data)
        self._reap()
        self._look()
        return True

    def kill_all(self) -> None:
        for task in self._tasks.values():
            task.cause = "left"
            _kill(task.pid)
        self._reap(wait=True)

    def _patience_s(self) -> float | None:
        return _LOOK_EVERY_S if self._tasks else None

    def _start(self, request: dict[str, Any], fds: list[int]) -> None:
        line_fd, answer_fd = fds
        limits = from_wire(request["limits"])
        line = socket.socket(fileno=line_fd)
        pid = self._fork(request, answer_fd)
        os.close(answer_fd)
        deadline = time.monotonic() + limits.wall_s
        self._tasks[pid] = _Task(pid, line, Path(request["folder"]), limits, deadline)
        self._selector.register(line, selectors.EVENT_READ, data=pid)

    def _fork(self, request: dict[str, Any], answer_fd: int) -> int:
        if self._apart:
            kernel.unshare(kernel.NEW_PID)
        pid = os.fork()
        if pid == 0:
            be_task(request, answer_fd, own_users=self._apart)
        if self._apart:
            kernel.enter_namespace(self._own_pids, kernel.NEW_PID)
        return pid

    def _leave(self, pid: int) -> None:
        """The worker's end of the line is closed: nobody waits for this task any more."""
        if (task := self._tasks.get(pid)) is not None:
            task.cause = "left"
            self._selector.unregister(task.line)
            _kill(pid)

    def _look(self) -> None:
        now = time.monotonic()
        for task in self._tasks.values():
            if task.cause:
                continue
            if now >= task.deadline:
                task.cause = "wall"
            elif not _is_within(task.folder, task.limits):
                task.cause = "output"
            if task.cause:
                _kill(task.pid)

    def _reap(self, *, wait: bool = False) -> None:
        while True:
            try:
                pid, status, usage = os.wait4(-1, 0 if wait else os.WNOHANG)
            except ChildProcessError:
                return
            if pid == 0:
                return
            if (task := self._tasks.pop(pid, None)) is not None:
                _kill(pid)
                if not self._apart:
                    self._kill_strays()
                self._report(task, os.waitstatus_to_exitcode(status), usage)

    def _kill_strays(self) -> None:
        # Without a process namespace, what left its group and lost its parent was handed to us.
        while strays := [pid for pid in kernel.own_children() if not self._is_ours(pid)]:
            for pid in strays:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
                with contextlib.suppress(ChildProcessError):
                    os.waitpid(pid, 0)

    def _is_ours(self, pid: int) -> bool:
        try:
            return pid in self._tasks or os.getpgid(pid) in self._tasks
        except ProcessLookupError:
            return True

    def _report(self, task: _Task, code: int, usage: Any) -> None:
        if task.cause != "left":
            self._selector.unregister(task.line)
            cpu_s = usage.ru_utime + usage.ru_stime
            if code == -signal.SIGKILL and not task.cause and cpu_s >= task.limits.cpu_s - _TICK_S:
                task.cause = "cpu"
            scale = 1 if sys.platform == "darwin" else 1024
            with contextlib.suppress(OSError):
                ended = {"code": code, "cause": task.cause, "peak_bytes": usage.ru_maxrss * scale}
                frames.send(task.line, ended)
        task.line.close()


def _kill(pid: int) -> None:
    """End the task and its group. Its process namespace, if it has one, ends with it."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, signal.SIGKILL)
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)


def _is_within(folder: Path, limits: Limits) -> bool:
    files = size_bytes = 0
    for root, folders, names in os.walk(folder):
        files += len(names) + len(folders)
        for name in names:
            with contextlib.suppress(OSError):
                size_bytes += os.lstat(os.path.join(root, name)).st_size  # noqa: PTH118
        if files > limits.files or size_bytes > limits.output_bytes:
            return False
    return True

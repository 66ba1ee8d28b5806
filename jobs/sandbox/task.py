"""The child's own part: it locks itself in, does one task, writes its answer and ends."""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import resource
import signal
import traceback
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NoReturn

from jobs.sandbox import kernel
from jobs.sandbox.limits import Limits, from_wire

ANSWER_LIMIT_BYTES = 1024 * 1024
_ANSWER_FD = 3


def be_task(request: Mapping[str, Any], answer_fd: int, *, own_users: bool) -> NoReturn:
    """Become the task: never returns, whatever the task does."""
    status = 1
    try:
        limits = from_wire(request["limits"])
        _lock_in(Path(request["folder"]), answer_fd, limits, own_users=own_users)
        answer = json.dumps(_answer(request)).encode()
        if len(answer) > ANSWER_LIMIT_BYTES:
            answer = json.dumps({"defect": "the answer is too long"}).encode()
        _write(answer)
        status = 0
    finally:
        os._exit(status)


def _lock_in(folder: Path, answer_fd: int, limits: Limits, *, own_users: bool) -> None:
    os.setsid()
    kernel.die_with_parent()
    _reset_signals()
    _keep_only(answer_fd)
    if own_users:
        kernel.close_shared_places(folder)
    os.chdir(folder)
    os.umask(0o077)
    kernel.be_first_to_go()
    kernel.renounce_privileges()
    kernel.write_only_beneath(folder)
    _set_limits(limits, own_users=own_users)


def _reset_signals() -> None:
    signal.set_wakeup_fd(-1)
    for number in (signal.SIGCHLD, signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)


def _keep_only(answer_fd: int) -> None:
    nothing = os.open(os.devnull, os.O_RDWR)
    for standard in (0, 1, 2):
        os.dup2(nothing, standard)
    os.dup2(answer_fd, _ANSWER_FD, inheritable=False)
    os.closerange(_ANSWER_FD + 1, 1024)


def _set_limits(limits: Limits, *, own_users: bool) -> None:
    bounds = {
        resource.RLIMIT_CPU: limits.cpu_s,
        resource.RLIMIT_FSIZE: limits.output_bytes,
        resource.RLIMIT_NOFILE: 256,
        resource.RLIMIT_CORE: 0,
    }
    if own_users:
        # Elsewhere the kernel counts every process of this user, the worker's threads too.
        bounds[resource.RLIMIT_NPROC] = limits.processes
    if mapped := kernel.address_space_bytes():
        bounds[resource.RLIMIT_AS] = mapped + limits.memory_bytes
    for kind, bound in bounds.items():
        with contextlib.suppress(ValueError, OSError):
            resource.setrlimit(kind, (bound, bound))


def _answer(request: Mapping[str, Any]) -> dict[str, object]:
    try:
        return {"answer": _target(request["target"])(request["arguments"])}
    except MemoryError:
        return {"memory": True}
    except Exception as error:  # noqa: BLE001 - a defect is reported by its place, not its words
        last = traceback.extract_tb(error.__traceback__)[-1]
        place = f"{Path(last.filename).name}:{last.lineno}"
        return {"defect": f"{type(error).__name__} at {place}"}


def _target(name: str) -> Callable[[object], object]:
    module, _, function = name.partition(":")
    found: Callable[[object], object] = getattr(importlib.import_module(module), function)
    return found


def _write(answer: bytes) -> None:
    while answer:
        answer = answer[os.write(_ANSWER_FD, answer) :]

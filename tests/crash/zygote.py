"""Forks ready processes: all is imported once, so that a start costs a moment, not a second.

A forked child is a process of its own: it gets an environment, a log file and arguments, runs the
real command line, and dies for good when it is killed. The zygote has one thread and opens nothing.
"""

from __future__ import annotations

import importlib
import json
import os
import signal
import sys
import time
import traceback
from typing import Any, NoReturn

# What a start would import by itself; nothing here connects, opens or starts a thread.
MODULES = (
    "app.cli",
    "app.cli.parted",
    "app.compose",
    "app.compose.sharing",
    "app.telemetry",
    "app.store.migrate",
    "app.web.server",
    "jobs.broker.redis",
    "jobs.worker",
    "logging.config",
    "psycopg",
    "sqlalchemy.dialects.postgresql.psycopg",
    "sqlalchemy.dialects.sqlite",
    "structlog.dev",
)
RUNNING: set[int] = set()


def main() -> None:
    """Take one order a line; answer each with one line, until there are no more."""
    for module in MODULES:
        importlib.import_module(module)
    say("ready")
    while line := sys.stdin.readline():
        order = json.loads(line)
        answer = start(order) if "argv" in order else poll(order["pid"])
        say(json.dumps(answer))
    for pid in RUNNING:  # who gave the orders is gone: nothing of its test may stay behind
        os.kill(pid, signal.SIGKILL)
    os._exit(0)  # tearing down all that was imported takes seconds, and serves nobody


def say(line: str) -> None:
    """Answer the one who gives the orders."""
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def start(order: dict[str, Any]) -> int:
    """Fork a child that runs the command line; gives its process id."""
    pid = os.fork()
    if pid == 0:
        become(order)
    RUNNING.add(pid)
    return pid


def poll(pid: int) -> int | None:
    """The exit status of a child, negative for a signal; ``None`` while it runs."""
    found, status = os.waitpid(pid, os.WNOHANG)
    if found:
        RUNNING.discard(pid)
    return os.waitstatus_to_exitcode(status) if found else None


def become(order: dict[str, Any]) -> NoReturn:
    """Be a fresh process that was started with these arguments and this environment."""
    code = 1
    try:
        os.setsid()
        signal.signal(signal.SIGINT, signal.default_int_handler)
        _redirect(order)
        os.environ.clear()
        os.environ.update(order["environ"])
        time.tzset()
        os.chdir(order.get("folder", "."))
        sys.argv = ["laufzettel", *order["argv"]]
        importlib.import_module("app.cli").main()
        code = 0
    except SystemExit as ended:
        code = ended.code if isinstance(ended.code, int) else int(ended.code is not None)
    except BaseException:  # noqa: BLE001 - whatever it was, the parent's loop must not go on here
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def _redirect(order: dict[str, Any]) -> None:
    writing = os.O_WRONLY | os.O_APPEND | os.O_CREAT
    os.dup2(os.open(order.get("stdin", os.devnull), os.O_RDONLY), 0)
    os.dup2(os.open(order["log"], writing, 0o600), 1)
    os.dup2(os.open(order.get("errors", order["log"]), writing, 0o600), 2)


if __name__ == "__main__":
    main()

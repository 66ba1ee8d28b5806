"""Forks ready processes: all is imported once, so that a start costs a moment, not a second.

A forked child is a process of its own: it gets an environment, a log file and arguments, runs the
real command line (or one troubled life, ``app.cli.torture.life``), and dies for good when it is
killed. The zygote has one thread and opens nothing.
"""

from __future__ import annotations

import contextlib
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
    "app.cli.torture.life",
    "app.compose",
    "app.compose.sharing",
    "app.telemetry",
    "app.store.migrate",
    "app.web.server",
    "jobs.worker",
    "logging.config",
    "sqlalchemy.dialects.sqlite",
    "structlog.dev",
)
# What only an installation with services has.
IF_THERE = ("jobs.broker.redis", "psycopg", "sqlalchemy.dialects.postgresql.psycopg")
RUNNING: set[int] = set()


def main() -> None:
    """Take one order a line; answer each with one line, until there are no more."""
    for module in MODULES:
        importlib.import_module(module)
    for module in IF_THERE:
        with contextlib.suppress(ImportError):
            importlib.import_module(module)
    # Ctrl-C is for the one who gives the orders.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    say("ready")
    while line := sys.stdin.readline():
        order = json.loads(line)
        answer = start(order) if "log" in order else poll(order["pid"])
        say(json.dumps(answer))
    for pid in RUNNING:  # who gave the orders is gone: nothing of its run may stay behind
        os.kill(pid, signal.SIGKILL)
    os._exit(0)  # tearing down all that was imported takes seconds, and serves nobody


def say(line: str) -> None:
    """Answer the one who gives the orders."""
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def start(order: dict[str, Any]) -> int:
    """Fork a child that does as the order says; gives its process id."""
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
        _be_in(order["environ"])
        os.chdir(order.get("folder", "."))
        code = _live(order["life"]) if "life" in order else _command(order["argv"])
    except BaseException:  # noqa: BLE001 - whatever it was, the parent's loop must not go on here
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def _be_in(environ: dict[str, str]) -> None:
    # A forked child takes the environment that a started one would have been given.
    os.environ.clear()  # noqa: TID251
    os.environ.update(environ)  # noqa: TID251
    time.tzset()


def _command(argv: list[str]) -> int:
    sys.argv = ["laufzettel", *argv]
    try:
        importlib.import_module("app.cli").main()
    except SystemExit as ended:
        return ended.code if isinstance(ended.code, int) else int(ended.code is not None)
    return 0


def _live(plan: dict[str, Any]) -> int:
    code: int = importlib.import_module("app.cli.torture.life").live(plan)
    return code


def _redirect(order: dict[str, Any]) -> None:
    writing = os.O_WRONLY | os.O_APPEND | os.O_CREAT
    os.dup2(os.open(order.get("stdin", os.devnull), os.O_RDONLY), 0)
    os.dup2(os.open(order["log"], writing, 0o600), 1)
    os.dup2(os.open(order.get("errors", order["log"]), writing, 0o600), 2)


if __name__ == "__main__":
    main()

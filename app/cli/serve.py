"""``run``: everything in one process, until a signal ends it."""

from __future__ import annotations

import sys
import threading
from typing import TYPE_CHECKING

from app.cli.screen import (
    DEFAULT_CONFIG,
    FAILED,
    WRONG,
    ConfigOption,
    complain,
    config_or_exit,
    refuse,
)

if TYPE_CHECKING:  # --help needs none of it
    from app.compose import Process
    from app.config import Config


def run(config: ConfigOption = DEFAULT_CONFIG) -> None:
    """Start web, worker and scheduler in one process; Ctrl-C stops it in order."""
    from app.cli.stopping import stopped
    from app.clock import SystemClock
    from app.telemetry import configure_logs

    loaded = config_or_exit(config)
    configure_logs(sys.stderr, clock=SystemClock(), as_json=not sys.stderr.isatty())
    process = _composed(loaded)
    ended = threading.Event()
    with stopped(ended):
        try:
            _start(process)
            ended.wait()
        finally:
            process.stop()


def _composed(config: Config) -> Process:
    import typer

    from app.compose import Refused, compose_run

    process = compose_run(config)
    if isinstance(process, Refused):
        complain(process.problems)
        raise typer.Exit(WRONG)
    return process


def _start(process: Process) -> None:
    from app.store.errors import StoreError
    from app.web.server import ServerError

    try:
        process.start()
    except (ServerError, StoreError) as error:
        refuse(str(error), "free the address, or mend the store, and start again", status=FAILED)
    if process.web is not None and sys.stderr.isatty():
        print(f"Laufzettel listens on {process.web.url}", file=sys.stderr)
        if code := process.web.sign_in_code:
            print(f"Nobody has access yet. Sign in once with the code {code}", file=sys.stderr)

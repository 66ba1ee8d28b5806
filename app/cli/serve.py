"""``run``: everything in one process, until a signal ends it."""

from __future__ import annotations

import gc
import os
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from app.cli import nearby
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
    from app.compose import Process, Refused
    from app.config import Config

_MADE_BEFORE_A_SEARCH = 20_000
_EVERYWHERE = {"0.0.0.0": "127.0.0.1", "[::]": "[::1]"}  # noqa: S104 - where a command finds it


def run(config: ConfigOption = DEFAULT_CONFIG) -> None:
    """Start web, worker and scheduler in one process; Ctrl-C stops it in order.

    It needs no service: the store is a SQLite file, artifacts are files in a folder. While nobody
    has a token, it prints a code for the first one. Exit status 2: this start would do harm, the
    message says what and what mends it; 1: the address or the store cannot be used.
    """
    from app.cli.stopping import stopped
    from app.clock import SystemClock
    from app.compose import compose_run
    from app.telemetry import configure_logs

    loaded = config_or_exit(config)
    configure_logs(sys.stderr, clock=SystemClock(), as_json=not sys.stderr.isatty())
    _say(f"store      {loaded.installation.database.shown}")
    process = accepted(loaded, lambda: compose_run(loaded))
    ended = threading.Event()
    with stopped(ended):
        try:
            _start(process)
            with _found_nearby(process, loaded):
                _greet(process, loaded)
                ended.wait()
            _say("stopping   what runs may finish; Ctrl-C again ends it at once")
        finally:
            process.stop()


def accepted(config: Config, compose: Callable[[], Process | Refused]) -> Process:
    """The process; where it cannot be, what is wrong, with its key and its mend, and the end."""
    import typer

    from app.artifacts import BlobsError
    from app.compose import Refused
    from app.store.errors import StoreError

    try:
        process = compose()
    except StoreError as error:
        what = f"{config.path.name}: laufzettel.database: {error}"
        refuse(what, "start the database, or mend its address", status=FAILED)
    except BlobsError as error:
        what = f"{config.path.name}: laufzettel.artifacts: {error}"
        refuse(what, "mend the address, or the rights there", status=FAILED)
    if isinstance(process, Refused):
        complain(process.problems)
        raise typer.Exit(WRONG)
    return process


def _start(process: Process) -> None:
    from app.store.errors import StoreError
    from app.web.server import ServerError

    try:
        process.start()
    except ServerError as error:
        mend = "end what has the address, or give another in laufzettel.listen"
        refuse(str(error), mend, status=FAILED)
    except StoreError as error:
        refuse(str(error), "mend the store, and start again", status=FAILED)
    _spare_the_collector()


def _spare_the_collector() -> None:
    """What was made until now stays: the search for dead cycles need not look at it ever again.

    Nearly all that a delivery makes dies without that search, which took 6 % of the writer's time.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(_MADE_BEFORE_A_SEARCH)


@contextmanager
def _found_nearby(process: Process, config: Config) -> Iterator[None]:
    """While inside, commands on this machine find the process by a file beside its store."""
    store, serving = config.installation.database_path, process.web
    if store is None or serving is None:
        yield
        return
    tls = config.installation.tls
    certificate = str(tls.cert_path.absolute()) if tls else ""
    nearby.leave(
        store,
        nearby.Nearby(_reachable(serving.url), serving.local_token, os.getpid(), certificate),
    )
    try:
        yield
    finally:
        nearby.remove(store)


def _reachable(url: str) -> str:
    """The address as a client on this machine writes it."""
    for everywhere, here in _EVERYWHERE.items():
        url = url.replace(f"//{everywhere}:", f"//{here}:")
    return url


def _greet(process: Process, config: Config) -> None:
    if process.web is None:
        return
    for source in config.sources:
        _say(f"takes      {config.installation.public_url}/hooks/{source.name}")
    for destination in config.destinations:
        _say(f"tells      {destination.name}")
    url = _reachable(process.web.url)
    _say(f"console    {url}/console  (API: {url}/schema/openapi.json)")
    if code := process.web.sign_in_code:
        _say(f"sign in    with the code {code}, once, within 15 minutes; nobody has a token yet")
        _say("           or make one: laufzettel tokens create NAME --role admin")
    _say("look       laufzettel status · laufzettel files    (Ctrl-C ends this process)")


def _say(line: str) -> None:
    """Tell the one who sits at the terminal; a service's output is its log."""
    if sys.stderr.isatty():
        print(line, file=sys.stderr, flush=True)

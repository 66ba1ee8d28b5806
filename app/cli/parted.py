"""``web``, ``worker``: the halves as processes of their own, as many of each as wanted."""

from __future__ import annotations

import signal
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from app.cli.screen import (
    DEFAULT_CONFIG,
    FAILED,
    ConfigOption,
    config_or_exit,
    refuse,
)
from app.cli.serve import accepted

if TYPE_CHECKING:  # --help needs none of it
    from app.compose import Process
    from app.config import Config
    from app.store.leases import WorkKind

ProcessesOption = Annotated[
    int, typer.Option("--processes", min=1, max=64, help="How many processes share the work.")
]
# How a crew starts a member; nobody types it.
MemberOption = Annotated[int, typer.Option("--member", hidden=True)]
QueuesOption = Annotated[
    str, typer.Option("--queues", metavar="KINDS", help="Of download, transform, notify.")
]
_ALL = "download,transform,notify"


def web(
    config: ConfigOption = DEFAULT_CONFIG, processes: ProcessesOption = 1, member: MemberOption = -1
) -> None:
    """Serve deliveries, API and console as a process of its own; on PostgreSQL only.

    Several processes share one address. SIGTERM ends them in order, SIGHUP replaces one after the
    other without an interruption.
    """
    loaded = _shared(config, "web")
    if member >= 0:
        _serve(_composed_web(loaded, member), is_member=True)
    elif processes > 1:
        from app.web.server import Place, ServerError, claimed

        place = loaded.installation
        try:
            held = claimed(Place(place.listen_host, place.listen_port))
        except ServerError as error:
            refuse(str(error), "free the address, and start again", status=FAILED)
        with held:
            _crew(config, ["web", "--member", str(held.getsockname()[1])], processes)
    else:
        _serve(_composed_web(loaded, None), is_member=False)


def worker(
    config: ConfigOption = DEFAULT_CONFIG,
    processes: ProcessesOption = 1,
    queues: QueuesOption = _ALL,
    member: MemberOption = -1,
) -> None:
    """Do the work as a process of its own, as many as wanted; on PostgreSQL only.

    Each process does all kinds of work, or those that ``--queues`` names. SIGTERM lets what runs
    finish and hands the rest back, SIGHUP replaces one process after the other.
    """
    loaded = _shared(config, "worker")
    kinds = _kinds(queues)
    if member < 0 and processes > 1:
        _crew(config, ["worker", "--queues", queues, "--member", "0"], processes)
        return
    from app.compose import compose_worker

    process = accepted(loaded, lambda: compose_worker(loaded, kinds=kinds))
    _serve(process, is_member=member >= 0)


def _kinds(queues: str) -> frozenset[WorkKind]:
    from jobs.actors import QUEUES

    wanted = {name.strip() for name in queues.split(",")}
    if unknown := wanted.difference(QUEUES.values()):
        refuse(f"--queues: {', '.join(sorted(unknown))} is no kind of work", f"use some of {_ALL}")
    return frozenset(kind for kind, queue in QUEUES.items() if queue in wanted)


def _shared(path: Path, command: str) -> Config:
    config = config_or_exit(path)
    if config.installation.is_embedded:
        mend = "start everything with: laufzettel run; or name a postgresql:// database"
        refuse(f"a SQLite store has one process, so there is no {command} beside it", mend)
    return config


def _composed_web(config: Config, port: int | None) -> Process:
    from app.compose import compose_web

    return accepted(config, lambda: compose_web(config, port=port))


def _serve(process: Process, *, is_member: bool) -> None:
    from app.cli import crew
    from app.cli.stopping import stopped
    from app.clock import SystemClock
    from app.store.errors import StoreError
    from app.telemetry import configure_logs
    from app.web.server import ServerError

    configure_logs(sys.stderr, clock=SystemClock(), as_json=not sys.stderr.isatty())
    ended = threading.Event()
    if is_member:
        crew.watch_starter(ended)
    with stopped(ended):
        try:
            process.start()
            if is_member:
                crew.say_ready()
            ended.wait()
        except (ServerError, StoreError) as error:
            mend = "free the address, or mend the store, and start again"
            refuse(str(error), mend, status=FAILED)
        finally:
            process.stop()


def _crew(config: Path, arguments: list[str], processes: int) -> None:
    from app.cli.crew import Crew
    from app.cli.stopping import stopped
    from app.clock import SystemClock

    ended, renewed = threading.Event(), threading.Event()
    command = [sys.executable, "-m", "app.cli", *arguments, "--config", str(config)]
    signal.signal(signal.SIGHUP, lambda *_: renewed.set())
    with stopped(ended):
        status = Crew(command, processes, SystemClock()).work(ended, renewed)
    if status:
        raise typer.Exit(status)

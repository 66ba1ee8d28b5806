"""The processes that are measured and those around them, each started and stopped in order."""

from __future__ import annotations

import queue
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

import httpx
import psutil

from app.compose import Process, compose_run
from app.config import Config, load
from app.ledger.requests import Control
from domain.commands import Cause
from domain.installation import Paused
from tests.benchmarks.deliveries import SECRET, SOURCE
from tests.commands import ROOT, START, environment
from tests.servers import closed_port

_START_S = 60.0
_NOWHERE = "127.0.0.1:9"
_CONFIG = """\
[laufzettel]
listen    = "127.0.0.1:{port}"
base_url  = "http://127.0.0.1:{port}"
database  = "{database}"
broker    = "{broker}"
artifacts = "file:{folder}/artifacts"

[sources.{source}]
profile = "standard-webhooks"
secrets = ["env:SECRET"]
[sources.{source}.download]
hosts   = ["{peers}"]

[recipes.documents]
sources    = ["{source}"]
transforms = [{{ name = "sum", use = "checksum" }}]
notify     = ["erp"]

[destinations.erp]
url     = "http://{peers}/hooks"
secrets = ["env:SECRET"]
private = true
"""


@dataclass(frozen=True, slots=True)
class Measured:
    """One or more processes with a port, and what they take from the machine."""

    port: int
    processes: tuple[psutil.Process, ...]
    folder: Path
    started_s: float = 0.0

    @property
    def cpu_s(self) -> float:
        """What its processes computed so far."""
        spent = [each.cpu_times() for each in self.processes]
        return float(sum(each.user + each.system for each in spent))

    @property
    def resident_mb(self) -> float:
        """The memory that the larger of its processes holds now."""
        return max(float(each.memory_info().rss / 1e6) for each in self.processes)


@dataclass(frozen=True, slots=True)
class Peers:
    """The platform and the receiver; ``arrived`` grows as messages come."""

    host: str
    arrived: queue.SimpleQueue[tuple[float, str]] = field(default_factory=queue.SimpleQueue)

    def await_messages(self, count: int, *, within_s: float = 90) -> dict[str, float]:
        """When the first message about each of so many files came."""
        ends_s = time.monotonic() + within_s
        came: dict[str, float] = {}
        while len(came) < count:
            at_s, file_id = self.arrived.get(timeout=max(ends_s - time.monotonic(), 0.01))
            came.setdefault(file_id, at_s)
        return came

    def rest(self) -> None:
        """Let the system that is measured come to rest before the next file."""
        threading.Event().wait(0.05)


@contextmanager
def peers() -> Iterator[Peers]:
    """A process that has the documents and takes the messages."""
    with module("tests.benchmarks.peers") as (_, output, port):
        found = Peers(f"127.0.0.1:{port}")
        threading.Thread(target=_follow, args=(output, found), daemon=True).start()
        yield found


def _follow(output: IO[str], found: Peers) -> None:
    for line in output:
        at, _, file_id = line.partition(" ")
        found.arrived.put((float(at), file_id.strip()))


@contextmanager
def bare(folder: Path) -> Iterator[Measured]:
    """A process with the bare handler."""
    with module("tests.benchmarks.bare") as (process, _, port):
        yield Measured(port, (psutil.Process(process.pid),), folder)


@contextmanager
def module(name: str, *arguments: str) -> Iterator[tuple[subprocess.Popen[str], IO[str], int]]:
    """A process that prints its port and ends with its input."""
    with subprocess.Popen(
        [sys.executable, "-m", name, *arguments],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            yield process, process.stdout, int(process.stdout.readline())
        finally:
            process.stdin.close()
            process.wait(20)


def write_config(
    folder: Path, peers: str = _NOWHERE, *, database: str = "", broker: str = "memory:"
) -> int:
    """The configuration of everything here; gives the port that it names."""
    port = closed_port()
    place = database or f"sqlite:///{folder}/store.db"
    text = _CONFIG.format(
        port=port, source=SOURCE, peers=peers, folder=folder, database=place, broker=broker
    )
    (folder / "laufzettel.toml").write_text(text)
    return port


@contextmanager
def installation(folder: Path, peers: str = _NOWHERE) -> Iterator[Measured]:
    """``laufzettel run`` as a user starts it, its log in a file."""
    port = write_config(folder, peers)
    began_s = time.monotonic()
    with command(folder, "run") as process:
        _await(process, folder)
        took_s = time.monotonic() - began_s
        yield Measured(port, (psutil.Process(process.pid),), folder, took_s)


@contextmanager
def production(
    folder: Path, peers: str = _NOWHERE, *, database: str, broker: str, has_worker: bool = True
) -> Iterator[Measured]:
    """``laufzettel web`` and ``laufzettel worker``, one process of each, on real services."""
    port = write_config(folder, peers, database=database, broker=broker)
    subprocess.run(
        [sys.executable, "-c", START, "migrate"],
        cwd=folder,
        env=environment(SECRET=SECRET),
        check=True,
        capture_output=True,
    )
    with ExitStack() as started:
        kinds = ("web", "worker") if has_worker else ("web",)
        processes = [started.enter_context(command(folder, kind)) for kind in kinds]
        await_ready(port, processes[0], folder / "web.log")
        yield Measured(port, tuple(psutil.Process(each.pid) for each in processes), folder)


@contextmanager
def command(folder: Path, name: str) -> Iterator[subprocess.Popen[bytes]]:
    """A command that goes on until it is stopped, and has to stop in order."""
    log = folder / f"{name}.log"
    with log.open("wb") as output:
        process = subprocess.Popen(
            [sys.executable, "-c", START, name],
            cwd=folder,
            env=environment(SECRET=SECRET),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
        )
    try:
        yield process
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(60)
    assert process.returncode == 0, log.read_text()[-2000:]


def await_ready(port: int, process: subprocess.Popen[Any], log: Path) -> None:
    """Wait until deliveries are taken."""
    ends_s = time.monotonic() + _START_S
    never = threading.Event()
    while not _is_ready(port):
        assert process.poll() is None, log.read_text()[-2000:]
        assert time.monotonic() < ends_s, "it did not start"
        never.wait(0.05)


def _is_ready(port: int) -> bool:
    try:
        return httpx.get(f"http://127.0.0.1:{port}/health/ready", timeout=2).status_code == 200
    except httpx.TransportError:
        return False


def pause_all(folder: Path) -> None:
    """Let what is accepted wait: before the process starts, as an operator would."""
    write_config(folder)
    config = load(folder / "laufzettel.toml", {"SECRET": SECRET})
    assert isinstance(config, Config), config
    process = compose_run(config, has_web=False)
    assert isinstance(process, Process), process
    process.start()
    paused = Paused(at_ms=1, what="all", reason="benchmark")
    process.base.ledger.submit(Control(paused, Cause("system"))).result()
    process.stop()


def _await(process: subprocess.Popen[bytes], folder: Path) -> None:
    ends_s = time.monotonic() + _START_S
    never = threading.Event()
    while not (folder / "store.db.process").exists():
        assert process.poll() is None, (folder / "run.log").read_text()[-2000:]
        assert time.monotonic() < ends_s, "it did not start"
        never.wait(0.01)

"""Several web and worker processes on PostgreSQL, Valkey and S3, and the outside that counts.

Nothing is asked of the program about itself while it works: what counts is written down by the
platform and the receiver, which live in the test's own process.
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any, Self

import httpx

from app.artifacts import Blobs, open_blobs
from app.cli.demo.journal import Journal
from app.cli.demo.platform import Platform, path_of
from app.cli.demo.receiver import Receiver, keys_of
from app.cli.demo.sender import Answer, Sender
from app.cli.demo.serving import LoopbackServer
from app.clock import SystemClock
from app.config import Config, load
from domain.profiles import SourceEvent
from domain.schemes import InvalidSecret
from tests.buckets import Bucket
from tests.runtimes import SECRET, until
from tests.servers import closed_port

SETTINGS = """
[laufzettel]
database = "{database}"
broker = "env:BROKER"
artifacts = "{artifacts}"
listen = "127.0.0.1:{port}"
base_url = "http://127.0.0.1:{port}"
[sources.contracts]
profile = "standard-webhooks"
secrets = ["env:SECRET"]
[sources.contracts.download]
hosts = ["{platform}"]
retry = {{ base = "10ms", cap = "500ms" }}
[recipes.all]
sources = ["contracts"]
transforms = {transforms}
notify = ["erp"]
[destinations.erp]
url = "{erp}"
secrets = ["env:SECRET"]
private = true
concurrency = 16
retry = {{ base = "10ms", cap = "500ms" }}
"""
CHECKSUM = '[{ name = "sum", use = "checksum" }]'


@dataclass
class Crew:
    """A command that keeps several processes at work."""

    process: subprocess.Popen[bytes]

    @property
    def members(self) -> list[int]:
        """The process ids of those that it started."""
        pid = self.process.pid
        with suppress(OSError):
            return [int(p) for p in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
        return []

    def end(self) -> int:
        """Stop in order; gives the exit status."""
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(60)


@dataclass
class Fleet:
    """An installation of several processes, and the outside of it."""

    folder: Path
    config: Config
    environ: dict[str, str]
    log: IO[bytes]
    blobs: Blobs
    platform: Platform
    sender: Sender
    senders: ThreadPoolExecutor
    closing: threading.Event = field(default_factory=threading.Event)
    crews: list[Crew] = field(default_factory=list)
    expected: dict[str, str] = field(default_factory=dict)
    answers: list[Future[Answer]] = field(default_factory=list)

    @property
    def database(self) -> str:
        return self.config.installation.database_url

    # -- the program ------------------------------------------------------------------------------

    def command(self, *arguments: str) -> subprocess.Popen[bytes]:
        argv = [sys.executable, "-m", "app.cli", *arguments, "-c", str(self.config.path)]
        return subprocess.Popen(argv, env=self.environ, stdout=self.log, stderr=self.log)

    def start(self, kind: str, processes: int) -> Crew:
        """Start a crew of ``web`` or ``worker`` processes."""
        crew = Crew(self.command(kind, "--processes", str(processes)))
        self.crews.append(crew)
        if processes > 1:
            until(lambda: len(crew.members) == processes, within_s=120)
        return crew

    def await_web(self) -> None:
        """Wait until deliveries are taken."""
        until(self._is_taking, within_s=120)

    def _is_taking(self) -> bool:
        try:
            place = self.config.installation
            url = f"http://{place.listen_host}:{place.listen_port}/health/ready"
            return httpx.get(url, timeout=2).status_code == 200
        except httpx.TransportError:
            return False

    def stop(self) -> list[int]:
        """Stop all in order; gives the exit statuses."""
        crews, self.crews = self.crews, []
        for crew in crews:
            crew.process.send_signal(signal.SIGTERM)
        return [crew.process.wait(90) for crew in crews]

    # -- the source -------------------------------------------------------------------------------

    def version(self, file_id: str, number: int = 1) -> SourceEvent:
        """Offer a version at the platform; gives the event that tells of it."""
        content = f"{file_id} in version {number}\n".encode() * 50
        stored = self.platform.put(file_id, str(number), content, media_type="text/plain")
        self.expected[file_id] = str(number)
        host = self.config.sources[0].download.hosts[0]
        return SourceEvent(
            event_id=f"evt-{file_id}-{number}",
            type="file.version.created",
            action="version",
            file_id=file_id,
            version=str(number),
            name=f"{file_id}.txt",
            size_bytes=len(content),
            sha256=stored.sha256,
            media_type="text/plain",
            url=f"http://{host}{path_of(file_id, str(number))}",
        )

    def send(self, events: list[SourceEvent]) -> None:
        """Deliver these, in this order, each again and again until it is answered."""
        self.answers += [self.senders.submit(self._deliver, event) for event in events]

    def _deliver(self, event: SourceEvent) -> Answer:
        while not (answer := self.sender.once(event)).is_final:
            assert not self.closing.wait(0.05), "it was never answered"
        return answer

    # -- what was seen outside --------------------------------------------------------------------

    def told(self) -> list[dict[str, Any]]:
        """What reached the receiver, in order."""
        return Journal(self.folder / "erp.jsonl").entries()

    def downloads(self) -> Counter[tuple[str, str]]:
        """How often each version was asked for."""
        found = Journal(self.folder / "platform.jsonl").entries()
        return Counter((e["file_id"], e["version"]) for e in found if e["kind"] == "download")

    def is_told(self) -> bool:
        """Whether all are answered, and the receiver knows every file's newest version."""
        # Not more often: the record is read as a whole each time.
        self.closing.wait(0.25)
        if not all(answer.done() for answer in self.answers):
            return False
        return {(e["file_id"], e["version"]) for e in self.told()} >= self.expected.items()


@contextmanager
def fleet(
    folder: Path, *, database: str, broker: str = "memory:", bucket: Bucket | None = None
) -> Iterator[Fleet]:
    """Everything outside the program, and its configuration; no process is started."""
    clock = SystemClock()
    keys = keys_of((SECRET,))
    assert not isinstance(keys, InvalidSecret)
    platform = Platform(clock=clock, journal=Journal(folder / "platform.jsonl"))
    receiver = Receiver(keys, clock=clock, journal=Journal(folder / "erp.jsonl"))
    with ExitStack() as kept:
        serves, takes = LoopbackServer(platform.respond), LoopbackServer(receiver.respond)
        for server in (serves, takes):
            server.start()
            kept.callback(server.stop)
        port = closed_port()
        text = SETTINGS.format(
            database=database,
            artifacts=bucket.url if bucket else "file:artifacts",
            port=port,
            platform=serves.host,
            erp=takes.url("/hooks"),
            transforms=CHECKSUM,
        )
        path = folder / "laufzettel.toml"
        path.write_text(text)
        config = load(path, {"SECRET": SECRET, "BROKER": broker})
        assert isinstance(config, Config), config
        hook = f"http://127.0.0.1:{port}/hooks/contracts"
        made = Fleet(
            folder=folder,
            config=config,
            environ=_environ(bucket) | {"BROKER": broker},
            log=kept.enter_context((folder / "fleet.log").open("wb")),
            blobs=open_blobs(
                config.installation.artifacts_url, options=bucket.options if bucket else None
            ),
            platform=platform,
            sender=Sender(config.sources[0].ready, hook, clock=clock),
            senders=kept.enter_context(ThreadPoolExecutor(16)),
        )
        try:
            yield made
        finally:
            made.closing.set()
            made.sender.close()
            for crew in made.crews:
                for pid in (*crew.members, crew.process.pid):
                    with suppress(OSError):
                        os.kill(pid, signal.SIGKILL)
                crew.process.wait()


def _environ(bucket: Bucket | None) -> dict[str, str]:
    keys = {
        f"AWS_{name.upper()}": value for name, value in (bucket.options if bucket else {}).items()
    }
    return os.environ | {"SECRET": SECRET} | keys


class Killer:
    """Kills ``most`` members of the crews at random moments, or until it is told to end."""

    def __init__(
        self, crews: list[Crew], dice: random.Random, *, every_s: float, most: int
    ) -> None:
        self.killed = 0
        self._crews = crews
        self._dice = dice
        self._every_s = every_s
        self._most = most
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._work, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()

    def _work(self) -> None:
        while self.killed < self._most:
            if self._ended.wait(self._every_s * self._dice.uniform(0.5, 1.5)):
                return
            members = [pid for crew in self._crews for pid in crew.members]
            if members:
                with suppress(OSError):
                    os.kill(self._dice.choice(members), signal.SIGKILL)
                    self.killed += 1

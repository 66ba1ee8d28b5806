"""A real installation between a sample platform and a sample ERP, killed and started again.

Nothing is asked of the program about itself while it works: what counts is written down by the
platform and the receiver, which live in the test's own process, and what lies in the folder of
artifacts. Only after a clean stop the store is opened, to be replayed and verified.
"""

from __future__ import annotations

import hashlib
import signal
import threading
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx

from app.cli.demo.journal import Journal
from app.cli.demo.platform import Platform, path_of
from app.cli.demo.receiver import Receiver, keys_of
from app.cli.demo.sender import Answer, Sender
from app.cli.demo.serving import LoopbackServer
from app.clock import SystemClock
from app.config import Config, load
from app.replay import replay
from app.verify import verify_artifacts, verify_chain
from domain.profiles import SourceEvent
from domain.schemes import InvalidSecret
from tests.crash.places import Embedded, Place
from tests.crash.zygotes import KILLED, SECRET, Started, Zygote, until
from tests.servers import closed_port

SETTINGS = """
[laufzettel]
database = "{database}"
broker = "{broker}"
artifacts = "{artifacts}"
listen = "127.0.0.1:{port}"
base_url = "http://127.0.0.1:{port}"
[sources.contracts]
profile = "standard-webhooks"
secrets = ["env:SECRET"]
{source}
[sources.contracts.download]
hosts = ["{platform}"]
retry = {{ {attempts}base = "10ms", cap = "100ms" }}
[recipes.all]
sources = ["contracts"]
transforms = {transforms}
notify = ["erp"]
[destinations.erp]
url = "{erp}"
secrets = ["env:SECRET"]
private = true
rate = "1000/s"
retry = {{ base = "10ms", cap = "100ms" }}
{destination}
"""
CHECKSUM = '[{ name = "sum", use = "checksum" }]'


@dataclass
class World:
    """The folder of an installation, and the outside that sends to it and is told by it."""

    folder: Path
    place: Place
    zygote: Zygote
    config: Config
    port: int
    platform: Platform
    receiver: Receiver
    sender: Sender
    senders: ThreadPoolExecutor
    closing: threading.Event
    expected: dict[str, dict[str, str]] = field(default_factory=dict)
    answers: list[Future[Answer]] = field(default_factory=list)
    processes: dict[str, Started] = field(default_factory=dict)

    # -- what the source does ---------------------------------------------------------------------

    def version(self, file_id: str, number: int = 1, content: bytes = b"") -> SourceEvent:
        """Offer a version at the platform; gives the event that tells of it."""
        content = content or f"{file_id} in version {number}\n".encode()
        stored = self.platform.put(file_id, str(number), content, media_type="text/plain")
        self.expected.setdefault(file_id, {})[str(number)] = stored.sha256
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

    def send(self, *events: SourceEvent) -> None:
        """Deliver these events as a source does: again and again until each is answered."""
        self.answers += [self.senders.submit(self._deliver, event) for event in events]

    def _deliver(self, event: SourceEvent) -> Answer:
        while not (answer := self.sender.once(event)).is_final:
            assert not self.closing.wait(0.03), "it was never answered"
        return answer

    # -- the program ------------------------------------------------------------------------------

    @property
    def process(self) -> Started:
        """The process that listens."""
        return self.processes[self.place.parts[0]]

    def start(self, point: str = "") -> Started:
        """Start what does not run, with points armed if any are named; gives the one that listens."""
        for part in self.place.parts:
            self._start(part, point)
        return self.process

    def _start(self, part: str, point: str) -> None:
        """Start this part if it does not run; the mate of a worker is never killed."""
        if (last := self.processes.get(part)) is not None:
            if not last.is_over():
                return
            self.place.bury(last.pid)
        is_armed = point and part != "mate"
        armed = {"LAUFZETTEL_SCRATCH": str(self.folder), "LAUFZETTEL_POINT": point}
        environ = {**self.place.environ, **(armed if is_armed else {})}
        command = "worker" if part == "mate" else part
        self.processes[part] = self.zygote.start(self.folder, command, **environ)

    def listens(self) -> bool:
        """Whether anyone takes deliveries at its address."""
        try:
            return httpx.get(f"http://127.0.0.1:{self.port}/hooks/contracts").status_code > 0
        except httpx.TransportError:
            return False

    def has_begun(self) -> bool:
        """Whether each process that runs has said that it works, and one listens."""
        said = (self.folder / "run.log").read_text()
        pids = [process.pid for process in self.processes.values() if not process.is_over()]
        return all(f'"process.started","pid":{pid}}}' in said for pid in pids) and self.listens()

    def kill(self) -> None:
        """Kill all of it without a warning."""
        for process in self.processes.values():
            process.end(signal.SIGKILL)

    def stop(self) -> None:
        """Stop it in order."""
        codes = self.end()
        assert set(codes) == {0}, (codes, self.log())

    def end(self) -> list[int]:
        """Ask all that runs to end; gives how each ended."""
        for process in self.processes.values():
            process.ask(signal.SIGTERM)
        return [process.wait() for process in self.processes.values()]

    def log(self) -> str:
        """What it has said, its end."""
        path = self.folder / "run.log"
        return path.read_text()[-6000:] if path.exists() else ""

    def drain(self, *points: str) -> int:
        """Run it until all is done: each part with these points armed in turn, then without.

        Gives how many times one was killed; what is done before a point is reached ends it early.
        """
        lives = {part: [*points, ""] for part in self.place.parts}
        killed = 0
        self._forget()
        while True:
            for part in self._wanted(killed):
                if part not in self.processes or self.processes[part].is_over():
                    self._start(part, lives[part].pop(0) if lives[part] else "")
            # Not before all have begun: a signal that comes earlier would end one out of order.
            until(lambda: self.is_over() or (self.is_drained() and self.has_begun()))
            codes = self._codes() if self.is_over() else self.end()
            assert set(codes) <= {0, KILLED}, (codes, self.log())
            if not any(codes):
                return killed
            killed += len([code for code in codes if code])
            assert points, self.log()

    def _forget(self) -> None:
        for part, process in [*self.processes.items()]:
            if process.is_over():
                self.place.bury(process.pid)
                del self.processes[part]

    def _wanted(self, killed: int) -> list[str]:
        # The mate comes when the first has died: before, it could do all that was to be killed.
        return [part for part in self.place.parts if part != "mate" or killed]

    def _codes(self) -> list[int]:
        return [each.code or 0 for each in self.processes.values() if each.is_over()]

    def is_over(self) -> bool:
        """Whether a process has ended."""
        return any(process.is_over() for process in self.processes.values())

    def is_drained(self) -> bool:
        """Whether every delivery is answered, nothing is left to do, and all was told."""
        if not all(answer.done() for answer in self.answers):
            return False
        return not self.missing() and self.unfinished() == 0

    def missing(self) -> set[str]:
        """The files whose newest version nobody was told of yet."""
        told = {(entry["file_id"], entry["version"]) for entry in self.told("new")}
        return {
            file_id
            for file_id, versions in self.expected.items()
            if (file_id, max(versions, key=int)) not in told
        }

    def unfinished(self) -> int:
        """How much open work its store holds, read beside the running processes."""
        return self.place.unfinished()

    # -- what was seen outside --------------------------------------------------------------------

    def told(self, *verdicts: str) -> list[dict[str, Any]]:
        """What reached the receiver, in order, with these verdicts or with any."""
        found = Journal(self.folder / "erp.jsonl").entries()
        return [entry for entry in found if not verdicts or entry["verdict"] in verdicts]

    def downloads(self) -> Counter[tuple[str, str]]:
        """How often each version was asked for."""
        found = Journal(self.folder / "platform.jsonl").entries()
        return Counter((e["file_id"], e["version"]) for e in found if e["kind"] == "download")

    def blobs(self) -> set[str]:
        """The digests among the artifacts, each checked against its bytes."""
        kept = self.place.blobs()
        found = {blob.sha256 for blob in kept.list()}
        for sha256 in found:
            assert hashlib.sha256(b"".join(kept.stream(sha256))).hexdigest() == sha256
        return found


@contextmanager
def world(folder: Path, zygote: Zygote, at: Place | None = None, **parts: str) -> Iterator[World]:
    """Everything outside the program, and its configuration; the program is not started."""
    place: Place = at or Embedded(folder)
    clock = SystemClock()
    platform = Platform(clock=clock, journal=Journal(folder / "platform.jsonl"))
    keys = keys_of((SECRET,))
    assert not isinstance(keys, InvalidSecret)
    receiver = Receiver(keys, clock=clock, journal=Journal(folder / "erp.jsonl"))
    serves = LoopbackServer(platform.respond).start()
    takes = LoopbackServer(receiver.respond).start()
    port = closed_port()
    text = SETTINGS.format_map(
        {
            "database": place.database,
            "broker": place.broker,
            "artifacts": place.artifacts,
            "port": port,
            "platform": serves.host,
            "erp": takes.url("/hooks"),
            "transforms": CHECKSUM,
            "source": "",
            "attempts": "",
            "destination": "",
            **parts,
        }
    )
    config = configured(folder, text)
    source = config.sources[0].ready
    hook = f"http://127.0.0.1:{port}/hooks/contracts"
    sender = Sender(source, hook, clock=clock, journal=Journal(folder / "source.jsonl"))
    senders, ending = ThreadPoolExecutor(8), threading.Event()
    made = World(folder, place, zygote, config, port, platform, receiver, sender, senders, ending)
    try:
        yield made
    finally:
        ending.set()
        made.kill()
        senders.shutdown(cancel_futures=True)
        sender.close()
        platform.close()
        receiver.close()
        serves.stop()
        takes.stop()


def configured(folder: Path, text: str) -> Config:
    path = folder / "laufzettel.toml"
    path.write_text(text)
    config = load(path, {"SECRET": SECRET})
    assert isinstance(config, Config), config
    return config


def assert_all_as_it_should_be(made: World) -> None:
    """Count from outside, then replay and verify the store; the program has been stopped."""
    assert_told_once(made.told(), made.expected)
    assert made.missing() == set(), made.log()
    assert_artifacts(made.blobs(), made.expected)
    assert_one_receipt_each(made)
    assert [path.name for path in made.place.scratch().iterdir()] == []
    assert_store_is_sound(made.place)


def assert_one_receipt_each(made: World) -> None:
    """Whatever was lost on the way: all answers to one event carry the same receipt."""
    receipts: dict[str, set[str]] = {}
    for entry in Journal(made.folder / "source.jsonl").entries():
        assert entry["status"] in {0, 200, 202, 503}, entry
        if entry["receipt"]:
            receipts.setdefault(entry["event_id"], set()).add(entry["receipt"])
    assert {k: v for k, v in receipts.items() if len(v) != 1} == {}
    assert len(receipts) == sum(len(versions) for versions in made.expected.values())


def assert_told_once(told: Iterable[Mapping[str, Any]], expected: Mapping[str, Any]) -> None:
    """One message a version; the same id has the same bytes each time; sequences rise."""
    bytes_of: dict[str, set[str]] = {}
    ids_of: dict[tuple[str, str], set[str]] = {}
    for entry in told:
        assert entry["verdict"] in {"new", "old", "repeat", "failed"}, entry
        assert entry["file_id"] in expected, entry
        assert entry["type"] == "file.version.completed", entry
        bytes_of.setdefault(entry["message_id"], set()).add(entry["body_sha256"])
        ids_of.setdefault((entry["file_id"], entry["version"]), set()).add(entry["message_id"])
    assert {k: v for k, v in bytes_of.items() if len(v) != 1} == {}
    assert {k: v for k, v in ids_of.items() if len(v) != 1} == {}


def assert_artifacts(blobs: set[str], expected: Mapping[str, Mapping[str, str]]) -> None:
    """What was asked for lies in the folder, and nothing that was not.

    An older version that was superseded in time may have been left out, whole or after its bytes.
    """
    newest = {versions[max(versions, key=int)] for versions in expected.values()}
    every = {sha256 for versions in expected.values() for sha256 in versions.values()}
    assert newest | checksums(newest) <= blobs
    assert blobs <= every | checksums(every)


def checksums(digests: Iterable[str]) -> set[str]:
    """The digests of what the checksum step makes of files with these digests."""
    return {hashlib.sha256(f"sha256 {digest}\n".encode()).hexdigest() for digest in digests}


def assert_store_is_sound(place: Place) -> None:
    """The rows are those that the log makes, the chain holds, and the artifacts are whole."""
    store = place.store()
    try:
        outcome = replay(store)
        assert outcome.is_equal, outcome.differences
        assert verify_chain(store).is_sound
        assert verify_artifacts(store, place.blobs()).is_sound
    finally:
        store.close()

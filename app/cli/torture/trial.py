"""One schedule, played: the program is troubled and killed until all is done, then judged."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, field
from http.client import HTTPConnection, HTTPException
from pathlib import Path

from app.cli.demo.journal import Journal
from app.cli.demo.sender import Answer, Sender
from app.cli.demo.stage import free_port
from app.cli.torture.outside import Outside
from app.cli.torture.places import Places
from app.cli.torture.processes import KILLED, Started, Zygote, until
from app.cli.torture.samples import Sample, signing
from app.cli.torture.schedules import Life, Schedule, pick, shuffled, upto
from app.cli.torture.standins import in_scratch
from app.clock import Clock, SeededDice
from app.config import Config, Source
from app.store import queue
from app.store.engine import Store, open_reading
from app.store.errors import StoreUnavailableError

_AGAIN_S = 0.03
_SENDERS = 8
_MOST_FILES = 5
_STOP_S = 40.0
_ANSWER_S = 5.0
_FAILED = 1

Told = tuple[Sample, int]  # a file, and which version of it is told


@dataclass(frozen=True, slots=True)
class Ground:
    """What all trials stand on. ``patience_s`` is how long one life may take to be done."""

    config: Config
    samples: tuple[Sample, ...]
    zygote: Zygote
    environ: Mapping[str, str]
    clock: Clock
    secret: str
    seed: int
    patience_s: float = 120.0


@dataclass(slots=True)
class Trial:
    """A scratch area with the program in it, and everybody outside."""

    ground: Ground
    folder: Path
    places: Places
    config: Config
    outside: Outside
    senders: Mapping[str, Sender]
    pool: ThreadPoolExecutor
    closing: threading.Event
    dice: SeededDice
    newest: dict[str, Told] = field(default_factory=dict)
    answers: list[Future[Answer]] = field(default_factory=list)
    killed_at: list[str] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)
    inside: Store | None = None

    def play(self, schedule: Schedule) -> None:
        """Live these lives and a calm one; what ends in another way than planned is a fault."""
        lives = (*schedule.lives, Life()) if schedule.number else schedule.lives
        skew_s = 0.0
        for portion, life in zip(self._portions(schedule), lives, strict=True):
            # A clock that is right again waits for nothing; one set back by minutes would.
            skew_s = life.skew_s or skew_s
            if not self._lived(life, portion, skew_s, is_traced=schedule.number == 0):
                return
        if self._left():
            self.faults.append("lost: work was left when the last life ended")

    def _lived(self, life: Life, portion: list[Told], skew_s: float, *, is_traced: bool) -> bool:
        """One life; whether the next one may begin."""
        if life.outside:
            self.outside.misbehave(tuple(sample for sample, _ in portion))
        self._tell(portion)
        process = self._started(life, skew_s, is_traced=is_traced)
        is_in_time = until(
            lambda: process.is_over() or (self._is_done() and self._listens()),
            within_s=self.ground.patience_s,
            clock=self.ground.clock,
        )
        if not is_in_time:
            process.ask(signal.SIGKILL)
            self.faults.append(f"lost: after {self.ground.patience_s:.0f} s {self._left()} is left")
        elif not process.is_over():
            process.ask(signal.SIGTERM)
        until(process.is_over, within_s=_STOP_S, clock=self.ground.clock)
        return self._ended(process, life) and is_in_time

    def _ended(self, process: Started, life: Life) -> bool:
        if process.code == KILLED and life.points:
            self.killed_at.append(life.points.partition(":")[0])
        # A start on a store that fails may end with that reason: the next start finds all.
        is_planned = process.code == 0 or (
            process.code == KILLED if life.points else process.code == _FAILED and life.database
        )
        if not is_planned:
            self.faults.append(f"the process ended with {process.code}; its log says why")
        return bool(is_planned)

    # -- what is told -----------------------------------------------------------------------------

    def _portions(self, schedule: Schedule) -> list[list[Told]]:
        """What is told at the start of each life."""
        samples = self.ground.samples
        if schedule.number == 0:
            return [[(s, 1) for s in samples], [(s, 2) for s in samples]]
        chosen = shuffled(samples, self.dice)[:_MOST_FILES]
        told: list[Told] = [(sample, 1) for sample in chosen]
        told += [(chosen[0], 2), pick(self.dice, told)]
        portions: list[list[Told]] = [[] for _ in (*schedule.lives, Life())]
        if schedule.kind != "long":
            portions[0] = told
            return portions
        for each in told:
            portions[upto(self.dice, len(schedule.lives))].append(each)
        return portions

    def _tell(self, portion: list[Told]) -> None:
        for sample, version in portion:
            _, known = self.newest.get(sample.file_id, (sample, 0))
            self.newest[sample.file_id] = (sample, max(known, version))
            self.answers.append(self.pool.submit(self._delivered, sample, version))

    def _delivered(self, sample: Sample, version: int) -> Answer:
        """Tell it again and again until there is an answer for good, as sources do."""
        event, sender = sample.event(version, self.places.outside), self.senders[sample.source]
        while not (answer := sender.once(event)).is_final:
            if self.ground.clock.wait(self.closing, _AGAIN_S):
                break
        return answer

    # -- the program ------------------------------------------------------------------------------

    def _started(self, life: Life, skew_s: float, *, is_traced: bool) -> Started:
        places, ground = self.places, self.ground
        plan = {
            "config": str(ground.config.path.absolute()),
            **{name: str(value) for name, value in asdict(places).items()},
            "port": places.port,
            "seed": upto(self.dice, 2**31),
            "skew_s": skew_s,
            "wakeups": life.wakeups,
            "database": life.database,
            "at_call": life.at_call,
        }
        environ = {**ground.environ, "LAUFZETTEL_SCRATCH": str(self.folder)}
        environ["LAUFZETTEL_POINT"] = life.points
        environ |= {"LAUFZETTEL_TRACE": "1"} if is_traced else {}
        log = str(self.folder / "run.log")
        return ground.zygote.order({"life": plan, "environ": environ, "log": log})

    def _is_done(self) -> bool:
        return all(answer.done() for answer in self.answers) and self._left() == 0

    def _left(self) -> int:
        """How much is still to be done, read beside the running process."""
        if self.inside is None and not (self.folder / "store.db").exists():
            return len(self.answers)
        self.inside = self.inside or open_reading(self.config.installation.database_url)
        try:
            with self.inside.read() as connection:
                return queue.unfinished(connection)
        except StoreUnavailableError:  # not migrated yet, or locked for a moment
            return len(self.answers)

    def close(self) -> None:
        """Look inside no more."""
        if self.inside is not None:
            self.inside.close()

    def _listens(self) -> bool:
        """A signal that comes before all has begun would end it out of order."""
        asked = HTTPConnection("127.0.0.1", self.places.port, timeout=_ANSWER_S)
        try:
            asked.request("GET", "/health/live")
            return asked.getresponse().status > 0
        except (OSError, HTTPException):
            return False
        finally:
            asked.close()


@contextmanager
def trial(ground: Ground, folder: Path, number: int) -> Iterator[Trial]:
    """A trial ready to be played in this empty folder."""
    closing = threading.Event()
    with ExitStack() as ending:
        outside = Outside(folder, ground.clock)
        ending.callback(outside.close)
        places = Places(folder, free_port(), outside.host, ground.secret)
        config = in_scratch(ground.config, places)
        outside.open(config, ground.samples)
        senders = {s.name: _sender(s, places, ground, folder) for s in config.sources}
        for sender in senders.values():
            ending.callback(sender.close)
        pool = ThreadPoolExecutor(_SENDERS, "sources")
        ending.callback(pool.shutdown, cancel_futures=True)
        ending.callback(closing.set)
        dice = SeededDice(ground.seed * 7919 + number)
        made = Trial(ground, folder, places, config, outside, senders, pool, closing, dice)
        ending.callback(made.close)
        yield made


def _sender(source: Source, places: Places, ground: Ground, folder: Path) -> Sender:
    hook = f"{places.url}/hooks/{source.name}"
    journal = Journal(folder / f"source-{source.name}.jsonl")
    return Sender(signing(source), hook, clock=ground.clock, journal=journal)

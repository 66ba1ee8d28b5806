"""A run of many schedules: a calm one first, which says what all others must come to."""

from __future__ import annotations

import base64
import hashlib
import shutil
import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from app.cli.demo.stage import free_port
from app.cli.torture import standins
from app.cli.torture.judge import Heard, Key, Verdict, judged
from app.cli.torture.outside import UnplayableError
from app.cli.torture.places import Places
from app.cli.torture.processes import Zygote
from app.cli.torture.samples import pool
from app.cli.torture.schedules import CALM, Matrix, Schedule
from app.cli.torture.trial import Ground, Trial, trial
from app.clock import SystemClock
from app.config import Config, process_environment
from app.points import POINTS


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which schedules: those that begin within so long (``None``: all), or a single one."""

    seed: int
    lasting_s: float | None
    only: int | None = None


@dataclass(frozen=True, slots=True)
class Failure:
    """A schedule that did not end as it should; its number and the seed repeat it."""

    schedule: int
    seed: int
    words: str
    faults: tuple[str, ...]


@dataclass(slots=True)
class Report:
    """What a run amounts to."""

    seed: int
    stand_ins: tuple[str, ...]
    points: tuple[str, ...] = ()
    killed_at: tuple[str, ...] = ()
    schedules: int = 0
    of: int = 0
    kills: int = 0
    troubled: int = 0
    deliveries: int = 0
    messages: int = 0
    repeats: int = 0
    given_up: int = 0
    lost: int = 0
    doubled: int = 0
    wrong: int = 0
    failures: list[Failure] = field(default_factory=list)
    seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class Step:
    """How far a run is: a schedule that begins, and what was wrong with it once it has ended."""

    schedule: Schedule
    share: float
    faults: tuple[str, ...] = ()


class Run:
    """Plays one schedule after the other; raises ``UnplayableError`` where none can be played."""

    def __init__(
        self,
        config: Config,
        folder: Path,
        wanted: Wanted,
        ended: threading.Event,
        zygote: Zygote | None = None,
    ) -> None:
        self._folder, self._wanted, self._ended = folder, wanted, ended
        self._zygote = zygote
        self._clock = SystemClock()
        secret = _secret(wanted.seed)
        places = Places(folder, free_port(), f"127.0.0.1:{free_port()}", secret)
        self.notes = tuple(standins.notes(config, places))
        self._config, self._secret = config, secret
        self._samples = pool(standins.in_scratch(config, places), wanted.seed)
        if not self._samples:
            raise UnplayableError("no recipe takes a file of any configured source")
        self.report = Report(wanted.seed, self.notes)
        self.calm: tuple[Trial, Verdict] | None = None

    def steps(self) -> Iterator[Step]:
        """Play them, and tell of each twice: when it begins, and when it has ended."""
        began_s = self._clock.monotonic()
        environ = process_environment()
        zygote = self._zygote or Zygote(environ)
        try:
            ground = Ground(
                config=self._config,
                samples=self._samples,
                zygote=zygote,
                environ=dict(environ),
                clock=self._clock,
                secret=self._secret,
                seed=self._wanted.seed,
            )
            yield from self._played(ground)
        finally:
            if self._zygote is None:
                zygote.close()
            self.report.seconds = round(self._clock.monotonic() - began_s, 1)

    def _played(self, ground: Ground) -> Iterator[Step]:
        yield Step(CALM, 0.0)
        calm, verdict, points = self._calm(ground)
        self.calm = (calm, verdict)
        self._count(CALM, calm, verdict)
        yield Step(CALM, 0.0, _faults(verdict))
        if not verdict.is_good or not verdict.heard:
            self._refuse_silence(verdict)
            return
        matrix, began_s = Matrix(points, self._wanted.seed), self._clock.monotonic()
        self.report.points, self.report.of = points, len(matrix)
        for number in self._numbers(matrix):
            share = self._share(began_s, number, len(matrix))
            if self._ended.is_set() or share >= 1.0:
                return
            schedule = matrix.schedule(number)
            yield Step(schedule, share)
            yield Step(schedule, share, self._tried(ground, schedule, verdict.heard))

    def _numbers(self, matrix: Matrix) -> Iterator[int]:
        only = self._wanted.only
        if only is None:
            yield from range(1, len(matrix) + 1)
        elif only > len(matrix):
            raise UnplayableError(f"there are {len(matrix)} schedules, and none of number {only}")
        elif only:
            yield only

    def _share(self, began_s: float, number: int, all_of_them: int) -> float:
        if self._wanted.only is not None:
            return 0.0
        if self._wanted.lasting_s is None:
            return (number - 1) / all_of_them
        return (self._clock.monotonic() - began_s) / self._wanted.lasting_s

    def _calm(self, ground: Ground) -> tuple[Trial, Verdict, tuple[str, ...]]:
        with trial(ground, self._fresh(0), 0) as calm:
            calm.play(CALM)
            verdict = judged(calm, {})
            trace = calm.folder / "points.trace"
            lines = trace.read_text().splitlines() if trace.exists() else []
        passed = {line.split()[1] for line in lines}
        return calm, verdict, tuple(name for name in POINTS if name in passed)

    def _refuse_silence(self, verdict: Verdict) -> None:
        """Where even a calm run tells nobody anything, nothing can be counted."""
        if verdict.is_good:
            fault = "a calm run told no receiver of any file: see its log with --folder"
            self.report.wrong += 1
            self.report.failures.append(Failure(0, self._wanted.seed, CALM.words, (fault,)))

    def _tried(
        self, ground: Ground, schedule: Schedule, calm: Mapping[Key, Heard]
    ) -> tuple[str, ...]:
        folder = self._fresh(schedule.number)
        with trial(ground, folder, schedule.number) as played:
            played.play(schedule)
            verdict = judged(played, calm)
        self._count(schedule, played, verdict)
        if verdict.is_good:
            shutil.rmtree(folder, ignore_errors=True)
        return _faults(verdict)

    def _count(self, schedule: Schedule, played: Trial, verdict: Verdict) -> None:
        report = self.report
        if schedule.number:
            report.schedules += 1
            report.troubled += any(_is_troubled(words) for words in _troubles(schedule))
            report.killed_at = tuple(sorted({*report.killed_at, *played.killed_at}))
        report.kills += len(played.killed_at)
        report.deliveries += verdict.deliveries
        report.messages += verdict.messages
        report.repeats += verdict.repeats
        report.given_up += verdict.given_up
        report.lost += len(verdict.lost)
        report.doubled += len(verdict.doubled)
        report.wrong += len(verdict.wrong)
        if faults := _faults(verdict):
            failure = Failure(schedule.number, self._wanted.seed, schedule.words, faults)
            report.failures.append(failure)

    def _fresh(self, number: int) -> Path:
        folder = self._folder / f"schedule-{number}"
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        return folder


def _faults(verdict: Verdict) -> tuple[str, ...]:
    return (*verdict.lost, *verdict.doubled, *verdict.wrong)


def _troubles(schedule: Schedule) -> Iterator[str]:
    for life in schedule.lives:
        yield from life.troubles


def _is_troubled(words: str) -> bool:
    return not words.startswith("killed")


def _secret(seed: int) -> str:
    """What a source signs with that is played in standard words; it opens nothing."""
    digest = hashlib.sha256(f"laufzettel torture {seed}".encode()).digest()
    return f"whsec_{base64.b64encode(digest).decode()}"

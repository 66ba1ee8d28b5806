"""A seeded scheduler and a virtual clock around the real core: days of trouble in milliseconds.

Everything that is chance comes from one seed, so the seed alone repeats a run. A step is one act
of a source, a worker, the reaper, an operator or an outage.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from random import Random
from typing import Any, Literal

from domain import commands as c
from domain.attempts import UNCOUNTED_WAIT_MS
from domain.commands import Cause, Refusal
from domain.events import Artifact
from domain.ids import derive
from domain.outcomes import Again, Dead, Done, Unclear
from domain.states import Job, Message
from tests.simulation.installation import DESTINATIONS, KEY, RETRY, Installation, Lease
from tests.simulation.plans import Statement, content, fate, made_of, plan
from tests.simulation.receivers import Receiver

START_MS = 1_796_000_000_000
SECOND_MS, HOUR_MS, DAY_MS = 1000, 3_600_000, 86_400_000
PARTS = ("database", "s", *DESTINATIONS)
MOST_STEPS = 50_000
NEVER_MS = 1 << 62
OPERATOR = Cause("operator", operator="kim", reason="it works again")
ATTEMPT = Cause("attempt")


@dataclass(frozen=True, slots=True)
class Trouble:
    """How much goes wrong: shares of 1. ``none`` is a world in which everything works."""

    failure: float = 0.15
    crash: float = 0.02
    lost_answer: float = 0.1
    lost_wake: float = 0.2


NONE = Trouble(0, 0, 0, 0)


class Simulation:
    """One world from its first delivery until nothing is left to do."""

    def __init__(self, seed: int, files: int = 4) -> None:
        self.seed = seed
        self.steps = 0
        self.now_ms = START_MS
        self.random = Random(seed)
        self.trouble = Trouble()
        self.installation = Installation()
        self.receivers = {name: Receiver() for name in DESTINATIONS}
        self.plans = {f"F{n}": plan(self.random, f"F{n}") for n in range(files)}
        self._agenda: list[tuple[int, int, Callable[[], None]]] = []
        self._told = 0
        self._looks: list[int] = []
        self._accepted: set[str] = set()
        self._down: dict[str, int] = dict.fromkeys(PARTS, 0)
        self._life = 0
        self._statements = {s.event: s for made in self.plans.values() for s in made}

    def run(self) -> None:
        """Trouble first, then peace, until nothing happens any more."""
        for statement in self._statements.values():
            self._announce(statement)
        for _ in range(self.random.randint(0, 5)):
            self._later(partial(self._outage, self.random.choice(PARTS)), 3 * DAY_MS)
        for _ in range(self.random.randint(0, 4)):
            self._later(self._settle, 5 * DAY_MS)
        self._drain()
        self.trouble = NONE
        # What gave up while things were down is an operator's to bring back; then all must end.
        for _ in range(6):
            self._settle()
            self._wake()
            self._drain()

    @property
    def days(self) -> float:
        """How long it took on the virtual clock."""
        return (self.now_ms - START_MS) / DAY_MS

    def _drain(self) -> None:
        while self._agenda:
            self.steps += 1
            assert self.steps < MOST_STEPS, "it never comes to an end"
            self.now_ms, _, act = heapq.heappop(self._agenda)
            act()

    def _later(self, act: Callable[[], None], most_ms: float, least_ms: float = 0) -> None:
        """Have something happen by chance within this span."""
        self._at(self.now_ms + round(self.random.uniform(least_ms, most_ms)), act)

    def _at(self, at_ms: int, act: Callable[[], None]) -> None:
        self._told += 1
        heapq.heappush(self._agenda, (at_ms, self._told, act))

    def _happens(self, share: float) -> bool:
        return self.random.random() < share

    def _is_down(self, part: str) -> bool:
        return self.now_ms < self._down[part]

    def _outage(self, part: str) -> None:
        """Something is away, for seconds or for days."""
        for_ms = self.random.choice((30 * SECOND_MS, HOUR_MS, DAY_MS, 4 * DAY_MS))
        self._down[part] = max(self._down[part], self.now_ms + round(for_ms * self.random.random()))

    # -- sources ---------------------------------------------------------------------------------

    def _announce(self, statement: Statement) -> None:
        """Deliver it late, several times, out of order; now and then with other bytes too."""
        span_ms = self.random.choice((SECOND_MS, HOUR_MS, 2 * DAY_MS))
        for _ in range(self.random.choice((1, 1, 2, 3))):
            self._later(partial(self._deliver, statement, "true"), span_ms)
        if self._happens(0.1):
            self._later(partial(self._contradict, statement), span_ms + DAY_MS)

    def _deliver(self, statement: Statement, digest: str) -> None:
        if self._is_down("database") or self._happens(self.trouble.crash):
            # 503, or the process died before the commit: nothing is stored, the source repeats.
            self._later(partial(self._deliver, statement, digest), HOUR_MS, SECOND_MS)
            return
        command = _command(statement, self.now_ms)
        status = self.installation.accept(command, digest, self.now_ms)
        is_repeat = statement.event in self._accepted
        assert status == (200 if is_repeat else 202), "a repeat was not known as one"
        self._accepted.add(statement.event)
        if self._happens(self.trouble.lost_answer):
            self._later(partial(self._deliver, statement, digest), HOUR_MS, SECOND_MS)
        self._wake()

    def _contradict(self, statement: Statement) -> None:
        """Other bytes under the id of a known event: refused, and nothing moves."""
        if statement.event not in self._accepted or self._is_down("database"):
            return
        before = dict(self.installation.files)
        lie = Statement(statement.file, statement.event, "version", statement.place, 99, "lie")
        status = self.installation.accept(_command(lie, self.now_ms), "other", self.now_ms)
        assert status == 409
        assert before == self.installation.files

    # -- workers ---------------------------------------------------------------------------------

    def _wake(self) -> None:
        """Have a worker look: at once, twice, or late because the wake-up was lost."""
        if self._happens(self.trouble.lost_wake):
            self._look(60 * SECOND_MS, 59 * SECOND_MS)
            return
        for _ in range(1 + self._happens(self.trouble.lost_answer)):
            self._look(SECOND_MS)

    def _look(self, most_ms: float, least_ms: float = 0) -> None:
        at_ms = self.now_ms + round(self.random.uniform(least_ms, most_ms))
        self._looks.append(at_ms)
        self._at(at_ms, partial(self._work, at_ms))

    def _work(self, at_ms: int) -> None:
        """One worker looks for work, and takes a piece of what it finds."""
        self._looks.remove(at_ms)
        if self._is_down("database"):
            self._look(HOUR_MS, SECOND_MS)
            return
        for lease in self.installation.lapsed(self.now_ms):
            self._finish(lease, c.Lost())
        found = self.installation.claimable(self.now_ms)
        if found:
            stream, work = self.random.choice(found)
            self._begin(self.installation.claim(stream, work, self.now_ms), work)
        if len(found) > 1:
            self._look(SECOND_MS)
        elif (due_ms := self._next_due_ms()) < min(self._looks, default=NEVER_MS):
            # The relay's poll is the guarantee: whatever becomes of wake-ups, someone looks then.
            self._look(due_ms - self.now_ms + SECOND_MS, due_ms - self.now_ms)

    def _next_due_ms(self) -> int:
        """When there will be something to do: work that falls due, a lease that lapses."""
        known = self.installation
        due = [max(work.due_ms, self.now_ms + 15_000) for _, work, _ in known.open_work()]
        return min((*due, *(lease.until_ms for lease in known.leases.values())), default=NEVER_MS)

    def _begin(self, lease: Lease, work: Job | Message) -> None:
        """Work takes its time: now and then longer than the lease, now and then for ever."""
        took_ms = 90 * SECOND_MS if self._happens(self.trouble.crash) else 20 * SECOND_MS
        act = self._perform if isinstance(work, Job) else self._send
        self._later(partial(act, lease, self._life), took_ms)

    def _crash(self) -> None:
        """The process dies: whatever it was doing is never heard of again."""
        self._life += 1
        self.installation.crash()
        self._look(60 * SECOND_MS, SECOND_MS)

    def _perform(self, lease: Lease, life: int) -> None:
        """A job's effect, and its end."""
        if life != self._life:
            return
        if self._happens(self.trouble.crash):
            self._crash()
            return
        job = self.installation.files[lease.stream].jobs[lease.work]
        if job.kind == "download":
            self._download(lease, job)
            return
        self._finish(lease, self._transformed(lease, job))

    def _download(self, lease: Lease, job: Job) -> None:
        is_bad = self._is_down("s") or self._happens(self.trouble.failure)
        self.installation.learn("s", is_good=not is_bad, now_ms=self.now_ms)
        file, version = self._about(lease, job)
        if is_bad:
            self._finish(lease, Again("source answered 503", trouble=True))
        elif fate(file, version) == "no download":
            self._finish(lease, Dead("gone for good"))
        else:
            self._finish(lease, _stored(lease.stream, "original", content(file, version)))

    def _transformed(self, lease: Lease, job: Job) -> c.JobOutcome:
        file, version = self._about(lease, job)
        if self._happens(self.trouble.failure):
            return Again("disk full", counted=self._happens(0.5))
        if fate(file, version) == f"no {job.name}":
            return Dead("it cannot be read")
        return _stored(lease.stream, job.name, made_of(job.input, job.name))

    def _about(self, lease: Lease, job: Job) -> tuple[str, int]:
        return self.installation.files[lease.stream].file_id, int(job.version)

    def _send(self, lease: Lease, life: int) -> None:
        """Send a message, if the lease still holds; then record how it went."""
        if life != self._life or not self.installation.holds(lease):
            return
        message = self.installation.files[lease.stream].messages[lease.work]
        outcome, is_there = self._answer(message)
        if is_there:
            receiver = self.receivers[message.destination]
            receiver.take(message.id, self.installation.bodies[message.id])
        if self._happens(self.trouble.crash):
            self._crash()
            return
        is_good = isinstance(outcome, (Done, Dead))
        self.installation.learn(message.destination, is_good=is_good, now_ms=self.now_ms)
        self._finish(lease, outcome, reached=is_there)

    def _answer(self, message: Message) -> tuple[c.MessageOutcome, bool]:
        """How the receiver answers, and whether it took the message."""
        if self._is_down(message.destination):
            return Again("connection refused", trouble=True), False
        if not self._happens(self.trouble.failure):
            return Done(c.Accepted(f"ref {message.id}")), True
        hows: tuple[tuple[c.MessageOutcome, bool], ...] = (
            (Again("answered 503", trouble=True), False),
            (Again("answered 500 after all", trouble=True), True),
            (Again("answered 429", wait_s=float(self.random.randint(1, 7200))), False),
            (Unclear("no answer"), True),
            (Unclear("no answer"), False),
            (Dead("answered 422"), False),
        )
        return self.random.choice(hows)

    def _finish(
        self, lease: Lease, outcome: c.JobOutcome | c.MessageOutcome, *, reached: bool = False
    ) -> None:
        """Record the end of a claim, unless the lease is another's by now."""
        if not self.installation.holds(lease):
            return
        if self._is_down("database"):
            self._later(partial(self._finish, lease, outcome, reached=reached), UNCOUNTED_WAIT_MS)
            return
        common = {"stream": lease.stream, "cause": ATTEMPT, "epoch": lease.epoch, "retry": RETRY}
        command: c.FinishJob | c.FinishMessage
        if lease.work.startswith("job"):
            command = c.FinishJob(job=lease.work, outcome=outcome, **common)  # type: ignore[arg-type]
        else:
            command = c.FinishMessage(
                message=lease.work,
                outcome=outcome,  # type: ignore[arg-type]
                reached=reached,
                **common,  # type: ignore[arg-type]
            )
        decided = self.installation.submit(command, self.now_ms, self.random.random())
        assert not isinstance(decided, Refusal), decided
        del self.installation.leases[lease.work]
        again = self.installation.submit(command, self.now_ms, 0.5)
        assert isinstance(again, Refusal), "an end given twice was taken twice"
        self._wake()

    # -- operators -------------------------------------------------------------------------------

    def _settle(self) -> None:
        """An operator brings back what gave up, and decides what is held."""
        if self._is_down("database"):
            return
        for stream, file in tuple(self.installation.files.items()):
            for job in file.jobs.values():
                if job.phase == "dead":
                    self._order(c.RetryJob(stream=stream, cause=OPERATOR, job=job.id))
            for message in file.messages.values():
                if message.phase in {"dead", "held"} and message.id not in self.installation.leases:
                    self._resolve(stream, message)
        self._wake()

    def _resolve(self, stream: str, message: Message) -> None:
        ways: tuple[Literal["resend", "discard"], ...] = ("resend", "discard")
        for way in ways:
            order = c.ResolveMessage(stream=stream, cause=OPERATOR, message=message.id, outcome=way)
            if self._order(order):
                return

    def _order(self, command: c.AnyFileCommand) -> bool:
        decided = self.installation.submit(command, self.now_ms, self.random.random())
        return not isinstance(decided, Refusal)


def _stored(stream: str, name: str, digest: str) -> Done[c.Stored]:
    made = Artifact(
        id=derive(KEY, "art", stream, name, digest),
        name=name,
        sha256=digest,
        size_bytes=52,
        media_type="application/pdf",
    )
    return Done(c.Stored((made,)))


def _command(statement: Statement, now_ms: int) -> c.FactCommand:
    common: dict[str, Any] = {
        "stream": derive(KEY, "fil", "s", statement.file),
        "cause": Cause("delivery", id=f"dlv_{now_ms}"),
        "source": "s",
        "event": statement.event,
        "event_id": statement.event,
        "file_id": statement.file,
        "sequence": statement.place,
        "occurred_us": statement.place * 1_000_000,
    }
    match statement.kind:
        case "version":
            number, name = statement.version, statement.name
            value = f"{number:05}"
            return c.ReportVersion(version=str(number), value=value, name=name, url="u", **common)
        case "renamed":
            return c.ReportRename(name=statement.name, **common)
        case "deleted":
            return c.ReportDeletion(**common)
        case "restored":
            return c.ReportRestoration(**common)

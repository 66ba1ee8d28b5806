"""What a simulated installation keeps: logs, receipts, leases, breakers - around the real core.

Only what is durable lives here, so a crash is: fold every log again, and forget nothing else.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime

from domain import commands as c
from domain import events as e
from domain.breaker import Breaker, after, allows
from domain.commands import Context, Decision, Destination, Refusal
from domain.decider import decide, evolve, fold
from domain.recipes import Recipe, Step
from domain.schedule import RetryPolicy
from domain.states import File, Job, Message

KEY = b"k" * 32
LEASE_MS = 60_000
RETRY = RetryPolicy()
TYPES = (
    "file.version.completed",
    "file.version.failed",
    "file.deleted",
    "file.renamed",
)
RECIPE = Recipe(
    name="all",
    sources=("s",),
    steps=(Step("text", "text"), Step("preview", "preview", required=False)),
    notify=("erp", "crm"),
)
DESTINATIONS = {
    "erp": Destination("erp", types=TYPES),
    "crm": Destination("crm", types=TYPES, unclear="hold", superseded="send"),
}


@dataclass(frozen=True, slots=True)
class Lease:
    """A worker's right to a piece of work."""

    stream: str
    work: str
    epoch: int
    until_ms: int


@dataclass(slots=True)
class Installation:
    """One store under the real decider; the laws that hold at every moment are checked here."""

    files: dict[str, File] = field(default_factory=dict)
    logs: dict[str, list[e.FileEvent]] = field(default_factory=lambda: defaultdict(list))
    receipts: dict[str, str] = field(default_factory=dict)
    bodies: dict[str, bytes] = field(default_factory=dict)
    leases: dict[str, Lease] = field(default_factory=dict)
    epochs: dict[str, int] = field(default_factory=dict)
    breakers: dict[str, Breaker] = field(default_factory=lambda: defaultdict(Breaker))

    def accept(self, command: c.FactCommand, digest: str, now_ms: int) -> int:
        """The status that the source is answered: 202, 200 or 409."""
        known = self.receipts.get(command.event)
        if known is not None:
            return 200 if known == digest else 409
        decided = self.submit(command, now_ms, 0.5)  # type: ignore[arg-type]
        assert isinstance(decided, Decision), decided
        self.receipts[command.event] = digest
        return 202

    def submit(self, command: c.AnyFileCommand, now_ms: int, jitter: float) -> Decision | Refusal:
        """Decide and record in one step, as the Ledger's transaction does."""
        before = self.files.get(command.stream, File())
        context = Context(
            now_ms=now_ms,
            key=KEY,
            recipes={RECIPE.digest: RECIPE},
            configured=(RECIPE,),
            destinations=DESTINATIONS,
            in_flight=frozenset(w for w, on in self.leases.items() if on.stream == command.stream),
            salt=b"s" * 16,
            jitter=jitter,
        )
        decided = decide(before, command, context)
        if isinstance(decided, Decision):
            self._record(command.stream, before, decided)
        return decided

    def _record(self, stream: str, before: File, decided: Decision) -> None:
        file = before
        for event in decided.events:
            assert not isinstance(event, e.Told) or event.sequence > file.sequence
            file = evolve(file, event)
        assert file == decided.after
        done = (j.id for j in before.jobs.values() if j.phase == "done")
        assert all(file.jobs[job].phase == "done" for job in done), "a finished job began again"
        for body in decided.bodies:
            assert body.message not in self.bodies, "a message was made twice"
            self.bodies[body.message] = body.data
        self._check_idle(file)
        self.files[stream] = file
        self.logs[stream].extend(decided.events)

    def _check_idle(self, file: File) -> None:
        """Nothing waits to be done for a version that is not the current one."""
        skipping = {name for name, known in DESTINATIONS.items() if known.superseded == "skip"}
        jobs = [job for job in file.jobs.values() if job.is_open]
        messages = [
            message
            for message in file.messages.values()
            if message.is_open and message.version and message.destination in skipping
        ]
        waiting = [(w.id, w.version) for w in jobs] + [(w.id, w.version) for w in messages]
        for work, version in waiting:
            is_right = work in self.leases or version == file.view.current
            assert is_right, f"work for an old version: {work}"

    def crash(self) -> None:
        """Lose all that is not durable: the states are folded from the logs again."""
        for stream, log in self.logs.items():
            assert fold(log) == self.files[stream], "the log tells another state"

    # -- work ------------------------------------------------------------------------------------

    def open_work(self) -> Iterator[tuple[str, Job | Message, str]]:
        """Each open piece of work without a lease: its stream, itself, its breaker's name."""
        for stream, file in self.files.items():
            for job in file.jobs.values():
                if job.is_open and not job.asked and job.id not in self.leases:
                    yield stream, job, "s" if job.kind == "download" else ""
            for message in file.messages.values():
                is_free = message.is_open and message.phase != "held"
                if is_free and message.id not in self.leases:
                    yield stream, message, message.destination

    def claimable(self, now_ms: int) -> list[tuple[str, Job | Message]]:
        """What may be claimed now: due, and let through by its breaker."""
        now = moment(now_ms)
        room = {scope: allows(breaker, now) for scope, breaker in self.breakers.items()}
        for lease in self.leases.values():
            room_of = self._scope(lease)
            if room_of in room:
                room[room_of] -= 1
        return [
            (stream, work)
            for stream, work, scope in self.open_work()
            if work.due_ms <= now_ms and room.get(scope, 1) > 0
        ]

    def _scope(self, lease: Lease) -> str:
        file = self.files[lease.stream]
        if message := file.messages.get(lease.work):
            return message.destination
        return "s" if file.jobs[lease.work].kind == "download" else ""

    def claim(self, stream: str, work: Job | Message, now_ms: int) -> Lease:
        """Take a lease; its epoch is one above every earlier one."""
        epoch = max(self.epochs.get(work.id, 0), work.epoch) + 1
        self.epochs[work.id] = epoch
        lease = Lease(stream, work.id, epoch, now_ms + LEASE_MS)
        self.leases[work.id] = lease
        return lease

    def renew(self, lease: Lease, now_ms: int) -> bool:
        """Hold it longer; false says that it is another's by now."""
        if self.leases.get(lease.work, lease).epoch != lease.epoch or not self.holds(lease):
            return False
        self.leases[lease.work] = replace(lease, until_ms=now_ms + LEASE_MS)
        return True

    def holds(self, lease: Lease) -> bool:
        """Whether the lease is still this one: the fence that every later write passes."""
        known = self.leases.get(lease.work)
        return known is not None and known.epoch == lease.epoch

    def lapsed(self, now_ms: int) -> list[Lease]:
        """The leases whose holders did not come back."""
        return [lease for lease in self.leases.values() if lease.until_ms <= now_ms]

    def learn(self, scope: str, *, is_good: bool, now_ms: int) -> None:
        """Tell the breaker of a source or destination how a try went."""
        self.breakers[scope] = after(self.breakers[scope], is_good, moment(now_ms))


def moment(now_ms: int) -> datetime:
    """The virtual clock's reading as a time."""
    return datetime.fromtimestamp(now_ms / 1000, UTC)

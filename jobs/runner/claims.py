"""Claim: a lease, an open attempt and all that the effect must know, in one transaction."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from app.store import attempts, bodies, leases, projections, queue, rates, rows, slots
from app.store.engine import Connection
from app.store.leases import Hold, Lease, Open, WorkKind
from app.store.queue import Picture
from app.store.reading.traces import context_of
from domain.breaker import UNLIMITED
from domain.states import File, Job, Message, Version
from jobs.runner.gate import Gate

LEASE_MS = 60_000


@dataclass(frozen=True, slots=True)
class Claimed:
    """What every claim has: the lease, and the file as it was when the claim was made.

    ``trace`` is the context of what ordered the work, "" where no spans are kept.
    """

    lease: Lease
    file: File = field(repr=False)
    trace: str = field(default="", kw_only=True)


@dataclass(frozen=True, slots=True)
class ClaimedJob(Claimed):
    """A job under a lease."""

    @property
    def job(self) -> Job:
        """The job as the file has it."""
        return self.file.jobs[self.lease.id]

    @property
    def version(self) -> Version:
        """The version that the job works on."""
        return self.file.versions[self.job.version]


@dataclass(frozen=True, slots=True)
class ClaimedMessage(Claimed):
    """A message under a lease, with its exact bytes."""

    body: bytes = field(repr=False)

    @property
    def message(self) -> Message:
        """The message as the file has it."""
        return self.file.messages[self.lease.id]


Claim = ClaimedJob | ClaimedMessage


@dataclass(frozen=True, slots=True)
class Wanted:
    """Work to claim; ``file`` is its file as this transaction leaves it, where it wrote it."""

    work: str
    kind: WorkKind
    stream: str = ""
    file: File | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True)
class Claims:
    """Makes claims in the name of one worker, as far as the gate lets them through."""

    gate: Gate
    owner: str
    incarnation: int
    numbers: Callable[[Connection, int], list[int]]
    recipe_name: Callable[[Connection, str], str]
    is_traced: bool = False

    def take(self, connection: Connection, now_ms: int, wanted: Wanted) -> Claim | None:
        """Claim this piece of work; ``None`` if it is not to be done here and now."""
        found = _open(connection, wanted, now_ms)
        if found is None:
            return None
        hold = Hold(self.owner, self.incarnation, now_ms, LEASE_MS)
        # All that the claim must know; the file is read behind the lock on the work's row.
        with rows.together(connection):
            taken = leases.take(connection, found, hold)
            files = projections.ask(connection, () if wanted.file else [found.stream])
            data = bodies.ask(connection, found.id) if found.kind == "message" else None
            slot = self._slot(connection, found)
            picture = queue.picture_of(connection, found.scope, now_ms)
        lease, number = taken(), slot()
        if lease is None:
            if 0 < number <= UNLIMITED:
                slots.hand_back(connection, found.scope, number)
            return None
        file = wanted.file or files()[found.stream]
        made = self._claimed(connection, lease, file, data() if data else None)
        seen = picture()
        is_free = number <= self.gate.most(seen, found.scope, now_ms)
        if made is None or not (is_free and self._admits(connection, made, now_ms, seen)):
            leases.end(connection, [lease])
            return None
        attempts.begin(connection, self.numbers(connection, 1)[0], lease)
        return made

    def _slot(self, connection: Connection, work: Open) -> Callable[[], int]:
        """Take one of a destination's slots; the number is above all of them if none is free."""
        most = self.gate.terms(work.scope).concurrency
        is_counted = work.kind == "message" and most < UNLIMITED
        if not is_counted or connection.dialect.name == "sqlite":
            return lambda: 0
        number = slots.ask(connection, work.scope, work.id, most)
        return lambda: number() or UNLIMITED + 1

    def _claimed(
        self, connection: Connection, lease: Lease, file: File, body: bytes | None
    ) -> Claim | None:
        trace = context_of(connection, lease) if self.is_traced else ""
        if lease.kind != "message":
            return ClaimedJob(lease, file, trace=trace)
        return None if body is None else ClaimedMessage(lease, file, body, trace=trace)

    def _admits(self, connection: Connection, claim: Claim, now_ms: int, picture: Picture) -> bool:
        lease = claim.lease
        parts = {f"source:{claim.file.source}"}
        if isinstance(claim, ClaimedJob):
            parts.add(f"recipe:{self.recipe_name(connection, claim.job.recipe)}")
        if not picture.paused.isdisjoint(parts) or self.gate.free(picture, lease.scope, now_ms) < 0:
            return False
        ordered = self.gate.terms(lease.scope).ordered
        if ordered and not queue.is_next(connection, lease.id, ordered):
            return False
        per_s = self.gate.terms(lease.scope).rate_per_s
        return per_s is None or rates.take(connection, lease.scope, per_s, now_ms)


def _open(connection: Connection, wanted: Wanted, now_ms: int) -> Open | None:
    if wanted.file is not None:
        return _open_in(wanted.file, wanted, now_ms)
    find = leases.open_message if wanted.kind == "message" else leases.open_job
    return find(connection, wanted.work, now_ms)


def _open_in(file: File, wanted: Wanted, now_ms: int) -> Open | None:
    """The work as the file has it, if it may be claimed: its row says the same and is locked."""
    found = (file.messages if wanted.kind == "message" else file.jobs).get(wanted.work)
    if found is None or not found.is_open or found.due_ms > now_ms:
        return None
    if isinstance(found, Message):
        scope = f"destination:{found.destination}"
    elif found.asked:
        return None
    else:
        scope = leases.scope_of(found.kind, file.source, found.name)
    return Open(found.id, wanted.kind, wanted.stream, scope, found.epoch, found.attempts)

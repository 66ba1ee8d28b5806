"""A tiny world in memory around the pure core: one file, its log, workers and receivers.

The world keeps what the core is not allowed to forget: events, message bytes, leases. It checks
after every command the laws that hold at every moment, so that each test has them for nothing.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from domain import commands as c
from domain import events as e
from domain.commands import Cause, Context, Decision, Destination, Refusal
from domain.decider import decide, evolve, fold
from domain.ids import derive
from domain.order import Fact
from domain.outcomes import Done
from domain.recipes import Recipe, Step
from domain.schedule import RetryPolicy
from domain.states import File, Job, Message, Version

KEY = b"k" * 32
STREAM = "fil_one"
START_MS = 1_796_000_000_000
PATIENT = RetryPolicy(window_s=1e9)
FIVE_TRIES = RetryPolicy(attempts=5)
DELIVERY = Cause(kind="delivery", id="dlv_1")
ATTEMPT = Cause(kind="attempt")
OPERATOR = Cause(kind="operator", operator="kim", reason="asked for")

ALL_TYPES = (
    "file.version.completed",
    "file.version.failed",
    "file.deleted",
    "file.renamed",
    "file.erased",
)
TEXT = Step(name="text", use="text")
TEXT_2 = Step(name="text", use="text", release=2)
PREVIEW = Step(name="preview", use="preview", required=False)
INVOICES = Recipe(name="invoices", sources=("contracts",), steps=(TEXT, PREVIEW), notify=("erp",))
INVOICES_2 = replace(INVOICES, steps=(TEXT_2, PREVIEW))
ERP = Destination(name="erp", types=ALL_TYPES)


@dataclass(frozen=True, slots=True)
class Seen:
    """One request that reached a receiver."""

    destination: str
    id: str
    data: bytes
    type: str
    version: str
    sequence: int
    is_about_now: bool
    name: str

    @property
    def meaning(self) -> str:
        """What the receiver holds true afterwards, "" if the message leaves that alone."""
        if self.type == "file.renamed" or not self.is_about_now:
            return ""
        return f"{self.type}:{self.version}" if self.version else self.type


@dataclass(slots=True)
class World:
    """One file, as the log, the workers and the receivers know it."""

    recipes: tuple[Recipe, ...] = (INVOICES,)
    destinations: tuple[Destination, ...] = (ERP,)
    source: str = "contracts"
    stream: str = STREAM
    now_ms: int = START_MS
    jitter: float = 0.5
    in_order: bool = False
    file: File = field(default_factory=File)
    events: list[e.FileEvent] = field(default_factory=list)
    bodies: dict[str, bytes] = field(default_factory=dict)
    leases: dict[str, int] = field(default_factory=dict)
    epochs: dict[str, int] = field(default_factory=dict)
    seen: list[Seen] = field(default_factory=list)
    pinned: dict[str, Recipe] = field(default_factory=dict)
    forced: set[str] = field(default_factory=set)

    # -- commands --------------------------------------------------------------------------------

    def submit(self, command: c.AnyFileCommand) -> Decision | Refusal:
        """Decide, record, and check what holds at every moment."""
        self.now_ms += 1
        before = self.file
        outcome = decide(before, command, self.context)
        if isinstance(outcome, Refusal):
            return outcome
        if isinstance(command, c.ResolveMessage) and command.force:
            self.forced.add(command.message)
        for event in outcome.events:
            self._record(event)
        for body in outcome.bodies:
            assert body.message not in self.bodies, "a message was made twice"
            self.bodies[body.message] = body.data
        assert self.file == outcome.after
        self._check_moment(before)
        return outcome

    def given(self, command: c.AnyFileCommand) -> Decision:
        """Submit what must not be refused."""
        outcome = self.submit(command)
        assert isinstance(outcome, Decision), outcome
        return outcome

    def refused(self, command: c.AnyFileCommand) -> str:
        """Submit what must be refused; the code of the refusal."""
        outcome = self.submit(command)
        assert isinstance(outcome, Refusal), outcome
        return outcome.code

    @property
    def context(self) -> Context:
        known = {r.digest: r for r in self.recipes}
        self.pinned.update(known)
        return Context(
            now_ms=self.now_ms,
            key=KEY,
            recipes=self.pinned,
            configured=self.recipes,
            destinations={d.name: d for d in self.destinations},
            base_url="https://files.example.org",
            in_flight=frozenset(self.leases),
            salt=b"s" * 16,
            jitter=self.jitter,
        )

    def _record(self, event: e.FileEvent) -> None:
        if isinstance(event, e.Told):
            assert event.sequence > self.file.sequence, "sequences rise"
        done = [j.id for j in self.file.jobs.values() if j.phase == "done"]
        self.file = evolve(self.file, event)
        self.events.append(event)
        assert all(self.file.jobs[j].phase == "done" for j in done), "a finished job stays finished"

    def _check_moment(self, before: File) -> None:
        for message_id in before.messages:
            assert message_id in self.file.messages
        for job in self.idle_jobs():
            assert self.is_wanted(job.version), f"idle work for an unwanted version: {job}"
        skipping = {d.name for d in self.destinations if d.superseded == "skip"}
        for message in self.file.messages.values():
            is_idle = message.is_open and message.id not in self.leases
            is_false = message.type == "file.deleted" and self.file.view.is_present
            assert not (is_idle and is_false), "a deletion that is not true any more"
            if message.id in self.forced:
                continue
            if is_idle and message.version and message.destination in skipping:
                assert self.is_wanted(message.version), f"a message about the past: {message}"

    def is_wanted(self, name: str) -> bool:
        """Whether work on this version is to go on, said in the test's own words."""
        version, seen = self.file.versions[name], self.file.view
        recipe = self.pinned.get(version.recipe)
        if recipe is None or version.erased or not seen.is_present:
            return False
        return recipe.versions == "all" or name == seen.current

    # -- facts -----------------------------------------------------------------------------------

    def tell(self, fact: Fact, **more: Any) -> Decision:
        """Have the source state this fact."""
        return self.given(self.report(fact, **more))

    def report(self, fact: Fact, **more: Any) -> c.AnyFileCommand:
        """The command that brings this fact."""
        common: dict[str, Any] = {
            "stream": self.stream,
            "cause": DELIVERY,
            "source": self.source,
            "event": fact.event,
            "event_id": f"source-{fact.event}",
            "file_id": "F-17",
            "sequence": fact.sequence,
            "occurred_us": fact.at_us,
        }
        match fact.kind:
            case "version":
                about = {"version": fact.version, "value": fact.value, "name": fact.name}
                return c.ReportVersion(**{**common, **about, "url": "https://s/f", **more})
            case "renamed":
                return c.ReportRename(name=fact.name, **common)
            case "deleted":
                return c.ReportDeletion(**common)
            case "restored":
                return c.ReportRestoration(**common)

    # -- workers ---------------------------------------------------------------------------------

    def idle_jobs(self) -> list[Job]:
        """The jobs that a worker may claim."""
        jobs = self.file.jobs.values()
        return [j for j in jobs if j.is_open and not j.asked and j.id not in self.leases]

    def idle_messages(self) -> list[Message]:
        """The messages that a worker may claim."""
        messages = self.file.messages.values()
        sendable = {"pending", "waiting", "unclear"}
        idle = [m for m in messages if m.phase in sendable and m.id not in self.leases]
        return [m for m in idle if not (self.in_order and self._is_behind(m))]

    def _is_behind(self, message: Message) -> bool:
        """Whether an earlier message blocks it, as ``order = "file"``, ``on_dead = "block"`` say."""
        return any(
            m.sequence < message.sequence and (m.is_open or m.phase == "dead")
            for m in self.messages(destination=message.destination)
        )

    def claim(self, work: str) -> None:
        """Take a lease on a job or message."""
        known = self.file.jobs.get(work) or self.file.messages[work]
        assert known.is_open
        assert work not in self.leases
        self.now_ms = max(self.now_ms, known.due_ms)
        self.epochs[work] = max(self.epochs.get(work, 0), known.epoch) + 1
        self.leases[work] = self.epochs[work]

    def end_job(
        self, job: str, outcome: c.JobOutcome | None = None, *, retry: RetryPolicy = PATIENT
    ) -> Decision | Refusal:
        """End a claim of a job; without an outcome it is done."""
        end = c.FinishJob(
            stream=self.stream,
            cause=ATTEMPT,
            job=job,
            epoch=self.leases[job],
            outcome=outcome or self.result(job),
            retry=retry,
        )
        return self._end(job, end)

    def end_message(
        self,
        message: str,
        outcome: c.MessageOutcome | None = None,
        *,
        reached: bool = False,
        retry: RetryPolicy = PATIENT,
    ) -> Decision | Refusal:
        """End a claim of a message; without an outcome the receiver took it."""
        outcome = outcome or Done(c.Accepted())
        if reached or isinstance(outcome, Done):
            self.receive(message)
        end = c.FinishMessage(
            stream=self.stream,
            cause=ATTEMPT,
            message=message,
            epoch=self.leases[message],
            outcome=outcome,
            retry=retry,
            reached=reached,
        )
        return self._end(message, end)

    def _end(self, work: str, command: c.FinishJob | c.FinishMessage) -> Decision | Refusal:
        outcome = self.given(command)
        del self.leases[work]
        assert self.refused(command) == "stale", "an end given twice adds nothing"
        self._check_moment(self.file)
        return outcome

    def result(self, job_id: str) -> Done[c.Stored]:
        """What a job makes: the same bytes from the same input, whoever makes them."""
        job = self.file.jobs[job_id]
        made_of = job.version if job.kind == "download" else f"{job.input}{job.step}"
        digest = derive(KEY, "art", made_of)
        artifact = e.Artifact(
            id=derive(KEY, "art", self.stream, made_of),
            name="original" if job.kind == "download" else job.name,
            sha256=digest,
            size_bytes=52,
            media_type="application/pdf",
        )
        return Done(c.Stored((artifact,)))

    def receive(self, message_id: str) -> None:
        """A request reaches the receiver."""
        data = self.bodies[message_id]
        body: Mapping[str, Any] = json.loads(data)["data"]
        message = self.file.messages[message_id]
        self.seen.append(
            Seen(
                destination=message.destination,
                id=message_id,
                data=data,
                type=json.loads(data)["type"],
                version=body.get("version", ""),
                sequence=body["sequence"],
                is_about_now=body.get("current", True),
                name=body["name"],
            )
        )

    def work(self) -> None:
        """Do all that is due and all that follows from it, successfully."""
        for work in tuple(self.leases):
            self._finish(work)
        self.work_jobs()
        while messages := self.idle_messages():
            self.claim(messages[0].id)
            self.end_message(messages[0].id)
        if self.idle_jobs():
            self.work()

    def work_jobs(self) -> None:
        """Do all jobs that are due, successfully; messages stay where they are."""
        while jobs := self.idle_jobs():
            self.claim(jobs[0].id)
            self.end_job(jobs[0].id)

    def _finish(self, work: str) -> None:
        if work in self.file.jobs:
            self.end_job(work)
        else:
            self.end_message(work)

    # -- looking ---------------------------------------------------------------------------------

    def version(self, name: str) -> Version:
        return self.file.versions[name]

    def phase(self, name: str) -> str:
        return self.file.versions[name].phase

    def job(self, name: str, version: str = "") -> Job:
        """The latest job of this name."""
        jobs = self.file.jobs.values()
        return [j for j in jobs if j.name == name and version in {"", j.version}][-1]

    def messages(self, kind: str = "", destination: str = "erp") -> list[Message]:
        """A destination's messages, of this type, by sequence."""
        found = [m for m in self.file.messages.values() if m.destination == destination]
        return sorted((m for m in found if kind in m.type), key=lambda m: m.sequence)

    def kinds(self) -> list[str]:
        """The kinds of all events so far."""
        return [type(event).__name__ for event in self.events]

    def effects(self, destination: str = "erp") -> list[Seen]:
        """What a receiver that follows the rules acts on: new ids, above its last sequence."""
        known: set[str] = set()
        taken: list[Seen] = []
        for seen in self.seen:
            is_above = not taken or seen.sequence > taken[-1].sequence
            if seen.destination == destination and seen.id not in known and is_above:
                known.add(seen.id)
                taken.append(seen)
        return taken

    def belief(self, destination: str = "erp") -> str:
        """What such a receiver holds true in the end."""
        return next((s.meaning for s in reversed(self.effects(destination)) if s.meaning), "")

    def check_log(self) -> None:
        """The state is a fold of the log, and each message has one id and one form."""
        assert fold(self.events) == self.file
        forms: dict[str, bytes] = {}
        for seen in self.seen:
            assert forms.setdefault(seen.id, seen.data) == seen.data


def version(number: str, *, value: str | None = None, event: str = "", **more: Any) -> Fact:
    """A report of a version; its number orders it unless a value is given."""
    order = f"{int(number):05}" if value is None and number.isdigit() else value
    more.setdefault("name", "invoice.pdf")
    return Fact("version", event or f"v{number}", 0, version=number, value=order, **more)


def deleted(sequence: int, event: str = "") -> Fact:
    return Fact("deleted", event or f"d{sequence}", 0, sequence=sequence)


def restored(sequence: int, event: str = "") -> Fact:
    return Fact("restored", event or f"r{sequence}", 0, sequence=sequence)


def renamed(sequence: int, name: str, event: str = "") -> Fact:
    return Fact("renamed", event or f"n{sequence}", 0, sequence=sequence, name=name)


def told(world: World, facts: Iterable[Fact]) -> World:
    """The world after these facts."""
    for fact in facts:
        world.tell(fact)
    return world

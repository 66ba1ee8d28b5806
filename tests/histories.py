"""Random histories on a real store: sources, workers and operators act through one Ledger."""

from __future__ import annotations

import hashlib
import random
import threading
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, Literal, Self

import sqlalchemy as sa

from app.clock import SeededDice, SettableClock
from app.ledger import Ledger
from app.ledger.book import Book
from app.ledger.requests import Accept, Answer, Control, Finish, Order, Request
from app.store import tables as t
from app.store.engine import Store
from app.store.leases import Hold
from domain import commands as c
from domain.events import Artifact
from domain.ids import derive
from domain.installation import CONTROL_STREAM, Paused, RecipeDefined, Resumed
from domain.outcomes import Again, Dead, Done, Unclear
from domain.recipes import Recipe, Step
from domain.schedule import RetryPolicy
from tests import claiming

KEY = b"k" * 32
START = datetime(2026, 11, 30, 10, 0, tzinfo=UTC)
OPERATOR = c.Cause("operator", id="tok_1", operator="Åsa Öberg", reason="because she said so")
FIRST = Recipe("all", ("s",), (Step("text", "text"), Step("view", "preview", required=False)), ("erp", "crm"))  # fmt: skip
SECOND = Recipe("all", ("s",), (Step("text", "text", parameters=(("lang", "de"),)),), ("erp",))
FAR_MS = 10**14


def book() -> Book:
    """What the Ledger of a history knows."""
    kinds = (
        "file.version.completed", "file.version.failed", "file.deleted", "file.renamed",
        "file.erased",
    )  # fmt: skip
    return Book(
        key=KEY,
        incarnation=1,
        configured=(FIRST,),
        destinations={
            "erp": c.Destination("erp", types=kinds),
            "crm": c.Destination("crm", unclear="hold", superseded="send"),
        },
        base_url="http://127.0.0.1:8080",
        recipes={FIRST.digest: FIRST, SECOND.digest: SECOND},
    )


class History:
    """A world that acts at random, the same for the same seed."""

    def __init__(self, store: Store, seed: int = 0) -> None:
        self.store = store
        self.clock = SettableClock(START)
        self.ledger = Ledger(store, book(), self.clock, SeededDice(seed))
        self.random = random.Random(seed)
        self.files = [f"F-{n}" for n in range(4)]
        self._told = 0
        self._lock = threading.Lock()

    def __enter__(self) -> Self:
        self.ledger.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.ledger.close()

    def run(self, steps: int) -> None:
        """Let things happen."""
        acts: list[tuple[Callable[[], object], int]] = [
            (self.report, 6), (self.change, 3), (self.work, 14), (self.deliver, 8),
            (self.order, 3), (self.control, 1), (self.repeat, 1),
        ]  # fmt: skip
        chosen = self.random.choices(*zip(*acts, strict=True), k=steps)
        for act in chosen:
            self.clock.advance(self.random.choice((0.001, 1.0, 60.0)))
            act()

    def submit(self, *unit: Request) -> tuple[Answer, ...]:
        """Submit and wait."""
        return self.ledger.submit(*unit).result(timeout=30)

    # -- sources ------------------------------------------------------------------------------

    def report(self, file_id: str = "", version: int = 0) -> tuple[Answer, ...]:
        """Announce a version of a file."""
        return self.submit(self.announcement(file_id, version))

    def announcement(self, file_id: str = "", version: int = 0) -> Accept:
        """The delivery that announces a version of a file."""
        number = version or self.random.randint(1, 4)
        fact = self._fact(file_id)
        command = c.ReportVersion(
            **fact, version=str(number), value=f"{number:05}", name=f"Rechnung {number} – ü.pdf",
            url=f"http://127.0.0.1:9001/{number}?token=t", type="file.version.created",
            media_type="application/pdf",
        )  # fmt: skip
        return _accept(command)

    def change(self) -> None:
        """Delete, restore or rename a file, or say something that means nothing."""
        fact = self._fact("")
        commands: tuple[c.FactCommand, ...] = (
            c.ReportDeletion(**fact),
            c.ReportRestoration(**fact),
            c.ReportRename(**fact, name=f"neu-{self._told}.pdf"),
            c.ReportIgnored(**fact, type="file.viewed"),
        )
        self.submit(_accept(self.random.choice(commands)))

    def deletion(self, file_id: str) -> Accept:
        """The delivery that says that a file is gone."""
        return _accept(c.ReportDeletion(**self._fact(file_id)))

    def restoration(self, file_id: str) -> Accept:
        """The delivery that says that a file is back."""
        return _accept(c.ReportRestoration(**self._fact(file_id)))

    def repeat(self) -> None:
        """Deliver a known event again, or other bytes under its id."""
        if self._told:
            fact = self._fact("", number=self.random.randint(1, self._told))
            self.submit(_accept(c.ReportIgnored(**fact, type="x"), body=b"other"))

    def _fact(self, file_id: str, number: int = 0) -> dict[str, Any]:
        with self._lock:
            self._told += not number
            told = number or self._told
        name = file_id or self.random.choice(self.files)
        return {
            "stream": derive(KEY, "fil", "s", name),
            "cause": c.Cause("delivery", trace="00-trace-01"),
            "source": "s",
            "event": derive(KEY, "evt", "s", f"e{told}"),
            "event_id": f"e{told}",
            "file_id": name,
            "project": "P-9",
            "sequence": told if self.random.random() < 0.9 else None,
            "occurred_us": 1_000_000 * told,
        }

    # -- workers ------------------------------------------------------------------------------

    def work(self) -> None:
        """Claim a job and end it, in any way that it can end."""
        if job := self._some(t.jobs, t.jobs.c.state.in_(("ready", "waiting"))):
            self.finish_job(job, self.random.choices(("done", "again", "dead", "lost"), (8, 2, 1, 1))[0])  # fmt: skip

    def finish_job(self, job: str, how: str) -> None:
        """Claim this job and end it so."""
        hold = Hold("w", 1, FAR_MS, -2 * FAR_MS if how == "lost" else 60_000)
        lease = self.ledger.operate(lambda found, _: claiming.claim_job(found, job, hold))
        if lease is None:
            return
        digest = hashlib.sha256(f"{lease.stream}{self.random.randint(0, 2)}".encode()).hexdigest()
        kind = "original" if lease.kind == "download" else "text"
        made = Artifact(derive(KEY, "art", lease.stream, digest, kind), kind, digest, 4, "text/plain")  # fmt: skip
        outcome: c.JobOutcome = {
            "done": Done(c.Stored((made,))), "again": Again("source answered 503 for Müller"),
            "dead": Dead("encrypted"), "lost": c.Lost(),
        }[how]  # type: ignore[assignment]  # fmt: skip
        command = c.FinishJob(stream=lease.stream, cause=c.Cause("attempt", id=job), job=job,
                              epoch=lease.epoch, outcome=outcome, retry=RetryPolicy())  # fmt: skip
        self.submit(Finish(command=command, incarnation=1, outcome=how))

    def deliver(self) -> None:
        """Claim a message and end it, in any way that it can end."""
        states = ("pending", "waiting", "unclear")
        if message := self._some(t.messages, t.messages.c.state.in_(states)):
            how = self.random.choices(("done", "again", "dead", "unclear"), (8, 2, 1, 2))[0]
            self.finish_message(message, how)

    def finish_message(self, message: str, how: str) -> None:
        """Claim this message and end it so."""
        hold = Hold("w", 1, FAR_MS, 60_000)
        lease = self.ledger.operate(lambda found, _: claiming.claim_message(found, message, hold))
        if lease is None:
            return
        outcome: c.MessageOutcome = {
            "done": Done(c.Accepted("ERP-4711")), "again": Again("answered 503"),
            "dead": Dead("answered 422"), "unclear": Unclear("no answer"),
        }[how]  # type: ignore[assignment]  # fmt: skip
        command = c.FinishMessage(stream=lease.stream, cause=c.Cause("attempt", id=message),
                                  message=message, epoch=lease.epoch, outcome=outcome,
                                  retry=RetryPolicy(), reached=how != "again")  # fmt: skip
        self.submit(Finish(command=command, incarnation=1, outcome=how))

    def drain(self) -> None:
        """Let workers finish all there is, each at the first try."""
        while job := self._some(t.jobs, t.jobs.c.state.in_(("ready", "waiting")), ~t.jobs.c.asked):
            self.finish_job(job, "done")
        while message := self._some(t.messages, t.messages.c.state.in_(("pending", "waiting"))):
            self.finish_message(message, "done")

    # -- operators ----------------------------------------------------------------------------

    def order(self) -> None:
        """Give an order about some file, sensible or not."""
        stream = derive(KEY, "fil", "s", self.random.choice(self.files))
        who: dict[str, Any] = {"stream": stream, "cause": OPERATOR}
        ended = t.jobs.c.state.in_(("dead", "cancelled", "discarded", "waiting"))
        job = self._some(t.jobs, t.jobs.c.stream == stream, ended) or "job_none"
        message = self._some(t.messages, t.messages.c.stream == stream) or "msg_none"
        outcomes: tuple[Literal["delivered", "resend", "discard"], ...] = (
            "delivered", "resend", "discard",
        )  # fmt: skip
        outcome = self.random.choice(outcomes)
        choices: list[tuple[c.AnyFileCommand, int]] = [
            (c.RetryJob(**who, job=job), 3),
            (c.CancelJob(**who, job=job), 2),
            (c.DiscardJob(**who, job=job), 2),
            (c.ResolveMessage(**who, message=message, outcome=outcome, force=True), 4),
            (c.Reprocess(**who, recipe=SECOND.digest), 2),
            (c.HoldFile(**who), 1),
            (c.ReleaseFile(**who), 1),
            (c.EraseFile(**who), 1),
        ]
        command = self.random.choices(*zip(*choices, strict=True))[0]
        self.submit(Order(command))

    def erase(self, file_id: str) -> tuple[Answer, ...]:
        """Have a file erased."""
        return self.submit(Order(c.EraseFile(stream=derive(KEY, "fil", "s", file_id), cause=OPERATOR)))  # fmt: skip

    def control(self) -> None:
        """Pin a recipe, pause or resume something."""
        now_ms = int(self.clock.now().timestamp() * 1000)
        what = self.random.choice(("source:s", "destination:erp", "all"))
        recipe = self.random.choice((FIRST, SECOND))
        event = self.random.choice(
            (
                Paused(at_ms=now_ms, what=what, reason="they asked"),
                Resumed(at_ms=now_ms, what=what),
                RecipeDefined(at_ms=now_ms, digest=recipe.digest, form=recipe.canonical.decode()),
            )
        )
        self.submit(Control(event, OPERATOR, CONTROL_STREAM))

    def _some(self, table: sa.Table, *where: sa.ColumnElement[bool]) -> str:
        with self.store.read() as connection:
            found = connection.execute(sa.select(table.c.id).where(*where).order_by(table.c.id))
            ids = found.scalars().all()
        return str(self.random.choice(ids)) if ids else ""


def _accept(command: c.FactCommand, body: bytes = b"{}") -> Accept:
    digest = hashlib.sha256(body).hexdigest()
    return Accept(
        source="s", event=command.event, event_id=command.event_id, delivery_id="d",
        type="x", stream=command.stream, digest=digest, rule="bytes",
        compare=lambda _: digest, received_ms=1, key_id="k", body=body,
        command=command,  # type: ignore[arg-type]
    )  # fmt: skip

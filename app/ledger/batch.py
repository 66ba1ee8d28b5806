"""One batch of requests in one transaction: receipts, states, decisions, rows.

The order matters: streams are locked before the first write, receipts decide who came first,
states are read after the locks, and every multi-row write is sorted by key.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import assert_never

import sqlalchemy as sa

from app.clock import Dice
from app.ledger.book import Book
from app.ledger.controls import take_control
from app.ledger.gathered import FORGETTING, Gathered
from app.ledger.requests import (
    Accept,
    Accepted,
    Answer,
    Conflicted,
    Control,
    Finish,
    Note,
    Order,
    Recorded,
    Repeated,
    Request,
)
from app.ledger.streams import file_stream
from app.ledger.writing import write
from app.store import deliveries, event_log, leases, projections, receipts, rows, walks
from app.store.codec import encode_event
from app.store.deliveries import Delivery
from app.store.numbers import Numbers
from app.store.receipts import Receipt
from domain.commands import AnyFileCommand, Cause, Lost, Refusal, RetryJob
from domain.decider import decide
from domain.events import EventIgnored, VersionReported
from domain.installation import DeliveryQuarantined
from domain.states import File

Unit = tuple[Request, ...]


@dataclass(frozen=True, slots=True)
class Setting:
    """What every batch of a Ledger shares."""

    book: Book
    numbers: Numbers
    dice: Dice


class Batch:
    """Decides a sequence of units on one connection; what follows from them waits for ``write``."""

    def __init__(self, connection: sa.Connection, setting: Setting, now_ms: int) -> None:
        self._connection = connection
        self._setting = setting
        self._now_ms = now_ms
        self._before: dict[str, File] = {}
        self._files: dict[str, File] = {}
        self._revisions: dict[str, int] = {}
        self._receipts: dict[str, Receipt] = {}
        self._fresh: set[str] = set()
        self._leases: dict[str, leases.Lease] = {}
        self._flying: dict[str, frozenset[str]] = {}
        self._gathered = Gathered(now_ms)
        self._numbers: list[int] = []

    def run(self, units: Sequence[Unit]) -> list[tuple[Answer, ...]]:
        """Decide; the answers are true once all of ``write`` has been committed."""
        requests = [request for unit in units for request in unit]
        self._receive([r for r in requests if isinstance(r, Accept)])
        self._load(requests)
        answers = [tuple(self._answers(unit)) for unit in units]
        # Together with the notice that asked: one that was answered is never forgotten.
        wakes = {r.wake for r in requests if isinstance(r, Accept) and r.wake is not None}
        walks.ask(self._connection, wakes, self._now_ms)
        self._numbers = self._take(len(self._gathered.stored))
        return [tuple(map(self._as_left, answered)) for answered in answers]

    def _as_left(self, answer: Answer) -> Answer:
        """The answer with the file as the batch leaves it: a later unit may have moved it on."""
        if isinstance(answer, Recorded) and answer.stream:
            return replace(answer, file=self._files[answer.stream])
        return answer

    # -- before the decisions ---------------------------------------------------------------------

    def _receive(self, accepts: Sequence[Accept]) -> None:
        """Insert the receipts; who is not the first reads what the first was answered."""
        first: dict[str, Accept] = {}
        for accept in accepts:
            first.setdefault(accept.event, accept)
        numbers = self._take(2 * len(first))
        drafts = {
            event: self._receipt(accept, numbers.pop(), numbers.pop())
            for event, accept in first.items()
        }
        self._fresh = set(receipts.insert(self._connection, drafts.values()))
        known = [event for event in first if event not in self._fresh]
        self._receipts = drafts | receipts.find(self._connection, known) if known else drafts

    def _receipt(self, accept: Accept, number: int, payload: int) -> Receipt:
        return Receipt(
            event=accept.event,
            id=number,
            source=accept.source,
            stream=accept.stream,
            verdict="accepted" if accept.command is not None else accept.verdict,
            digest=accept.digest,
            comparison=accept.compare(accept.rule),
            rule=accept.rule,
            accepted_ms=self._now_ms,
            type=accept.type,
            event_id=accept.event_id,
            delivery_id=accept.delivery_id,
            key_id=accept.key_id,
            payload=payload if accept.body is not None else 0,
        )

    def _load(self, requests: Iterable[Request]) -> None:
        streams = {s for r in requests if (s := file_stream(r))}
        if not streams:
            return
        works = [_work(r) for r in requests if isinstance(r, Finish)]
        with rows.together(self._connection):
            files = projections.ask(self._connection, streams)
            flying = leases.in_flight(self._connection, streams)
            held = leases.of(self._connection, works)
        self._files, self._flying, self._leases = files(), flying(), held()
        self._before = dict(self._files)
        versions = (v for file in self._files.values() for v in file.versions.values())
        self._setting.book.learn(self._connection, (v.recipe for v in versions))

    def _take(self, count: int) -> list[int]:
        return self._setting.numbers.take(self._connection, count) if count else []

    # -- decisions --------------------------------------------------------------------------------

    def _answers(self, unit: Unit) -> Iterable[Answer]:
        for request in unit:
            answer = self._answer(request)
            yield answer
            if isinstance(answer, Refusal):
                return

    def _answer(self, request: Request) -> Answer:
        match request:
            case Accept():
                return self._accept(request)
            case Finish():
                return self._finish(request)
            case Order(command=command):
                return self._decide(command)
            case Control():
                return self._control(request)
            case Note(delivery=delivery, body=body):
                self._note(delivery, body)
                return Recorded()
            case _:
                assert_never(request)

    def _accept(self, accept: Accept) -> Answer:
        receipt = self._receipts[accept.event]
        if accept.event not in self._fresh:
            return self._known(accept, receipt)
        self._fresh.discard(accept.event)
        if receipt.payload:
            self._gathered.payloads.append((receipt.payload, accept.body, self._now_ms))
        if accept.control is not None:
            self._append(accept.control, self._caused(accept), f"source:{accept.source}")
        if accept.command is None:
            return Accepted(receipt)
        recorded = self._decide(_because(accept.command, self._caused(accept)))
        if (verdict := _verdict(recorded)) != "accepted":
            receipt = replace(receipt, verdict=verdict)
            self._receipts[accept.event] = receipt
            self._gathered.verdicts[accept.event] = verdict
        return Accepted(receipt)

    def _caused(self, accept: Accept) -> Cause:
        name = self._receipts[accept.event].name
        return accept.cause if accept.cause.id == name else replace(accept.cause, id=name)

    def _known(self, accept: Accept, receipt: Receipt) -> Answer:
        if accept.compare(receipt.rule) != receipt.comparison:
            return self._conflict(accept, receipt)
        self._note(_delivery(accept, "duplicate"), None)
        if accept.retries_failed and accept.command is not None:
            self._retry_failed(accept)
        return Repeated(receipt)

    def _conflict(self, accept: Accept, receipt: Receipt) -> Answer:
        """Quarantine other bytes under a known event id, once."""
        is_known = deliveries.is_quarantined(self._connection, accept.event, accept.digest)
        mine = [d for _, d in self._gathered.deliveries if d.verdict == "conflict"]
        is_known = is_known or any(
            (d.event, d.digest) == (accept.event, accept.digest) for d in mine
        )
        if not is_known:
            number = self._note(_delivery(accept, "conflict"), accept.body)
            event = DeliveryQuarantined(
                at_ms=self._now_ms,
                source=accept.source,
                event=accept.event,
                delivery=str(number),
                first_digest=receipt.digest,
                other_digest=accept.digest,
            )
            self._append(event, Cause("delivery", str(number)), accept.event)
        return Conflicted(receipt, accept.digest)

    def _retry_failed(self, accept: Accept) -> None:
        file = self._files[accept.stream]
        failed = {
            job
            for version in file.versions.values()
            if version.event == accept.event and version.phase == "failed"
            for job in version.jobs
        }
        for job_id in failed:
            if file.jobs[job_id].phase == "dead":
                cause = Cause("delivery", self._receipts[accept.event].name)
                self._decide(RetryJob(stream=accept.stream, cause=cause, job=job_id))

    def _finish(self, finish: Finish) -> Answer:
        command = finish.command
        lease = self._leases.pop(_work(finish), None)
        if lease is None or (lease.incarnation, lease.epoch) != (
            finish.incarnation,
            command.epoch,
        ):
            return Refusal("stale", "the lease is another's or has ended")
        is_lapse = isinstance(command.outcome, Lost)
        if is_lapse and lease.until_ms >= self._now_ms:
            return Refusal("conflict", "the lease was renewed")
        self._gathered.ended.append(lease)
        self._gathered.closed.append((lease, finish))
        flying = self._flying.get(command.stream, frozenset())
        self._flying[command.stream] = flying - {lease.id}
        return self._decide(command)

    def _decide(self, command: AnyFileCommand) -> Answer:
        setting = self._setting
        context = setting.book.context(
            now_ms=self._now_ms,
            salt=setting.dice.salt(),
            jitter=setting.dice.jitter(),
            in_flight=self._flying.get(command.stream, frozenset()),
        )
        file = self._files[command.stream]
        decision = decide(file, command, context)
        if isinstance(decision, Refusal):
            return decision
        for revision, event in enumerate(decision.events, start=file.revision + 1):
            self._store(event, command.cause, command.stream, revision)
            if isinstance(event, FORGETTING):
                self._gathered.forget(event, revision, command.stream, (file, decision.after))
        self._gathered.bodies.extend((body, self._now_ms) for body in decision.bodies)
        self._files[command.stream] = decision.after
        return Recorded(decision.events, command.stream)

    def _control(self, control: Control) -> Answer:
        book = self._setting.book
        answer = take_control(self._connection, book, control, self._now_ms)
        if not isinstance(answer, Recorded) or not answer.events:
            return answer
        self._append(control.event, control.cause, control.stream)
        return answer

    # -- what is going to be written --------------------------------------------------------------

    def _append(self, event: object, cause: Cause, stream: str) -> None:
        last = self._revisions.get(stream)
        if last is None:
            last = event_log.last_revision(self._connection, stream)
        self._revisions[stream] = last + 1
        self._store(event, cause, stream, last + 1)

    def _store(self, event: object, cause: Cause, stream: str, revision: int) -> None:
        self._gathered.stored.append(
            encode_event(
                event,  # type: ignore[arg-type]
                stream=stream,
                revision=revision,
                cause=cause,
                salt=self._setting.dice.salt(),
            )
        )

    def _note(self, delivery: Delivery, body: bytes | None) -> int:
        number, payload = self._take(2)
        if body is not None:
            self._gathered.payloads.append((payload, body, self._now_ms))
            delivery = replace(delivery, payload=payload)
        self._gathered.deliveries.append((number, delivery))
        return number

    def write(self) -> None:
        """Write the events, all that belongs to them, and the rows that they change."""
        write(self._connection, self._gathered, self._numbers)
        projections.write(
            self._connection,
            [
                projections.Change(stream, self._before[stream], file)
                for stream, file in self._files.items()
                if file.revision != self._before[stream].revision
            ],
        )

    @property
    def numbered(self) -> list[tuple[int, bytes]]:
        """The events' numbers and bodies, in order: what the chain is made over."""
        bodies = [stored.body for stored in self._gathered.stored]
        return list(zip(self._numbers, bodies, strict=True))


def _because(command: AnyFileCommand, cause: Cause) -> AnyFileCommand:
    return command if command.cause == cause else replace(command, cause=cause)


def _work(finish: Finish) -> str:
    command = finish.command
    return command.job if hasattr(command, "job") else command.message


def _verdict(answer: Answer) -> str:
    if not isinstance(answer, Recorded) or not answer.events:
        return "ignored"
    first = answer.events[0]
    if isinstance(first, EventIgnored):
        return "ignored"
    if isinstance(first, VersionReported) and first.verdict in {"stale", "ignored"}:
        return first.verdict
    return "accepted"


def _delivery(accept: Accept, verdict: deliveries.Verdict) -> Delivery:
    return Delivery(
        source=accept.source,
        verdict=verdict,
        received_ms=accept.received_ms,
        event=accept.event,
        event_id=accept.event_id,
        delivery_id=accept.delivery_id,
        digest=accept.digest,
        key_id=accept.key_id,
    )

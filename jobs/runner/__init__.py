"""Claim, perform, submit: one piece of work after the other, under a lease."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import get_args

from app.clock import Clock
from app.ledger import Ledger, LedgerClosedError
from app.ledger.requests import Answer
from app.points import point
from app.store import streaks
from app.store.engine import Connection
from app.store.errors import StoreUnavailableError
from app.store.leases import Lease, WorkKind
from app.telemetry import Metrics, Span, Traces, log
from app.telemetry.traces import trace_id_of
from domain.commands import Refusal
from domain.outcomes import Again, Dead, Unclear
from jobs.runner.circuits import Circuits, Lesson
from jobs.runner.claims import Claim, ClaimedMessage, Claims, Wanted
from jobs.runner.effects import Effects, Result
from jobs.runner.ending import (
    PAUSED_AFTER,
    finish_of,
    is_success,
    requests,
    stored_bytes,
    successors,
    wait_for_others,
    word,
)
from jobs.runner.holds import Held, Holds, now_ms

__all__ = ["Result", "Runner", "finish_of"]

_TRY_AGAIN_S = 0.5

# What the end of a claim left behind: the claim that follows, and what it taught.
_Ended = tuple[Claim | None, Lesson | None]


@dataclass(frozen=True, slots=True)
class Runner:
    """Carries out work by id. ``tried`` is told of each id that a claim was tried for.

    What ended work makes due is done at once if it is of these ``kinds``.
    """

    ledger: Ledger
    claims: Claims
    holds: Holds
    effects: Effects
    clock: Clock
    metrics: Metrics
    tried: Callable[[str], None]
    circuits: Circuits = field(default_factory=Circuits)
    kinds: frozenset[WorkKind] = frozenset(get_args(WorkKind))
    traces: Traces = field(default_factory=Traces)
    stopping: threading.Event = field(default_factory=threading.Event)

    def run(self, work: str, kind: WorkKind) -> None:
        """Do this piece of work if it may be done now, and then what it makes due."""
        claim = self._claim(work, kind)
        while claim is not None:
            claim = self._carry_out(claim)

    def hand_back(self) -> int:
        """Give up what still runs, uncounted; what its effects say afterwards is dropped."""
        left = self.holds.current
        for held in left:
            held.ending = "handed back"
            self._finish(held, _handed_back(held.claim))
        return len(left)

    def _claim(self, work: str, kind: WorkKind) -> Claim | None:
        try:
            if self.stopping.is_set():
                return None
            return self.ledger.operate(
                lambda connection, at_ms: self.claims.take(connection, at_ms, Wanted(work, kind))
            )
        except StoreUnavailableError as error:
            log.warning("job.not_claimed", work_id=work, reason=str(error))
            return None
        finally:
            self.tried(work)

    def _carry_out(self, claim: Claim) -> Claim | None:
        point("runner.claim.after")
        held = self.holds.begin(claim)
        try:
            with _span(self.traces, claim) as span:
                held.span = span.context
                began_s = self.clock.monotonic()
                result = self.effects.perform(held)
                self._tell(held, result, self.clock.monotonic() - began_s)
                _note(span, result)
                point("runner.finish.before")
                successor = self._finish(held, result)
            point("runner.finish.after")
        finally:
            self.holds.end(held)
        return successor

    def _finish(self, held: Held, result: Result) -> Claim | None:
        """Record the end for as long as the lease holds; a zombie's is refused there."""
        lease = held.claim.lease
        terms = self.claims.gate.terms(lease.scope)
        refused = self._refused(lease, result)
        finish = finish_of(lease, result, terms.retry, held.span)
        unit = requests(finish, lease, result, now_ms(self.clock), refused=refused)

        def then(connection: Connection, at_ms: int, answers: tuple[Answer, ...]) -> _Ended:
            if isinstance(answers[0], Refusal):
                return None, None
            wait_for_others(connection, lease, result, at_ms)
            lesson = self._learn(connection, lease.scope, result, at_ms)
            return self._succeed(connection, at_ms, answers), lesson

        while True:
            try:
                answers, (successor, lesson) = self.ledger.conclude(unit, then).result()
            except LedgerClosedError:
                return None
            except StoreUnavailableError:
                if now_ms(self.clock) >= held.until_ms:
                    return None
                self.clock.wait(self.stopping, _TRY_AGAIN_S)
            else:
                if lesson is not None:
                    self.circuits.keep(lesson)
                if isinstance(answers[0], Refusal):
                    log.info("job.result_dropped", work_id=lease.id, reason=answers[0].reason)
                return successor

    def _refused(self, lease: Lease, result: Result) -> int:
        """How many in a row the destination refused for good before this one."""
        if lease.kind != "message" or not isinstance(result.outcome, Dead):
            return 0
        most = PAUSED_AFTER - 1
        try:
            return self.ledger.operate(
                lambda connection, _: streaks.refused_in_a_row(connection, lease.scope, most=most)
            )
        except (StoreUnavailableError, LedgerClosedError):
            return 0

    def _learn(
        self, connection: Connection, scope: str, result: Result, at_ms: int
    ) -> Lesson | None:
        policy = self.claims.gate.terms(scope).breaker
        success = is_success(result)
        if policy is None or success is None:
            return None
        return self.circuits.learn(connection, scope, policy, at_ms, is_success=success)

    def _succeed(
        self, connection: Connection, at_ms: int, answers: tuple[Answer, ...]
    ) -> Claim | None:
        if self.stopping.is_set():
            return None
        ours = (each for each in successors(answers) if each.kind in self.kinds)
        tries = (self.claims.take(connection, at_ms, each) for each in ours)
        return next((claim for claim in tries if claim is not None), None)

    def _tell(self, held: Held, result: Result, seconds: float) -> None:
        claim = held.claim
        lease, outcome = claim.lease, word(result)
        traced = {"trace_id": trace_id_of(held.span)} if held.span else {}
        name = "message.sent" if isinstance(claim, ClaimedMessage) else "job.finished"
        log.info(
            name,
            work_id=lease.id,
            file_id=lease.stream,
            attempt=lease.attempt,
            outcome=outcome,
            duration_ms=round(seconds * 1000),
            **traced,
        )
        if isinstance(claim, ClaimedMessage):
            destination = claim.message.destination
            self.metrics.count("messages", destination=destination, outcome=outcome)
            self.metrics.observe("message_seconds", seconds, destination=destination)
        else:
            self.metrics.count("artifact_bytes", stored_bytes(result))
            self.metrics.count("jobs", kind=lease.kind, outcome=outcome)
            self.metrics.observe("job_seconds", seconds, kind=lease.kind)


def _span(traces: Traces, claim: Claim) -> AbstractContextManager[Span]:
    lease = claim.lease
    is_message = isinstance(claim, ClaimedMessage)
    return traces.span(
        "message.send" if is_message else f"job.{lease.kind}",
        "client" if is_message else "worker",
        parent=claim.trace,
        work=lease.id,
        file=lease.stream,
        scope=lease.scope,
        attempt=lease.attempt,
    )


def _note(span: Span, result: Result) -> None:
    outcome = word(result)
    span.note(outcome=outcome)
    if outcome != "done":
        span.fail(outcome)


def _handed_back(claim: Claim) -> Result:
    """A job is due at once and uncounted; of a message nobody knows whether it arrived."""
    reason = "the process stopped meanwhile"
    if isinstance(claim, ClaimedMessage):
        return Result(Unclear(reason), reached=True)
    return Result(Again(reason, counted=False, wait_s=0))

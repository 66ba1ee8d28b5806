"""The laws of the core, over every order of arrival and every interleaving that Hypothesis finds."""

from __future__ import annotations

from dataclasses import replace
from itertools import permutations
from typing import Any, Literal

import pytest
from hypothesis import HealthCheck, given, note, settings
from hypothesis import strategies as st

from domain import commands as c
from domain.commands import Decision, Destination
from domain.decider import decide, fold
from domain.events import private_fields
from domain.order import Fact, FactKind, View, comparable, view
from domain.outcomes import Again, Dead, Unclear
from domain.schedule import RetryPolicy
from domain.states import NOTIFY, File
from tests.unit.world import (
    ALL_TYPES,
    FIVE_TRIES,
    INVOICES,
    INVOICES_2,
    OPERATOR,
    STREAM,
    World,
    told,
)

KINDS: tuple[FactKind, ...] = ("version", "version", "version", "deleted", "restored", "renamed")
ORDERS = ("version", "text", "sequence", "time")


def examples(quick: int) -> int:
    """How many examples: the profile "long" looks at many more."""
    return quick * (20 if settings.get_current_profile_name() == "long" else 1)


@st.composite
def fact_sets(draw: st.DrawFn, largest: int = 6) -> tuple[Fact, ...]:
    """Facts of one file, from a source that gives the same kinds of order with each of them."""
    order = draw(st.sampled_from(ORDERS))
    has_sequence = order == "sequence" or draw(st.booleans())
    has_time = order == "time" or not has_sequence or draw(st.booleans())
    size = draw(st.integers(1, largest))
    facts = []
    for n in range(size):
        kind = draw(st.sampled_from(KINDS)) if n else "version"
        number = draw(st.integers(1, 3))
        sequence = draw(st.integers(1, 8))
        at_us = draw(st.integers(1, 8))
        named = {"version": str(number), "text": f"v{number}", "sequence": str(sequence)}
        value = comparable(named.get(order, str(at_us)), "text" if order == "text" else "integer")
        facts.append(
            Fact(
                kind=kind,
                event=f"e{n}",
                arrival=0,
                version=f"{number}" if kind == "version" else "",
                value=value if kind == "version" else None,
                sequence=sequence if has_sequence else None,
                at_us=at_us if has_time else None,
                name=draw(st.sampled_from("ab")) if kind in {"version", "renamed"} else "",
            )
        )
    return tuple(facts)


@st.composite
def arrivals(draw: st.DrawFn, largest: int = 6) -> tuple[Fact, ...]:
    """A set of facts in some order, some of them repeated."""
    facts = draw(fact_sets(largest))
    order = draw(st.permutations(facts))
    repeats = draw(st.lists(st.sampled_from(facts), max_size=2))
    return (*order, *repeats)


def seen(facts: tuple[Fact, ...]) -> View:
    """The view after these facts, repeats and all, through the whole core."""
    return told(World(), facts).file.view


# -- (a) the view ----------------------------------------------------------------------------------


@pytest.mark.req("C4")
@settings(max_examples=examples(150))
@given(fact_sets())
def test_every_order_of_arrival_gives_the_same_view(facts: tuple[Fact, ...]) -> None:
    views = {
        view([replace(fact, arrival=n) for n, fact in enumerate(order, 1)])
        for order in permutations(facts)
    }
    assert len(views) == 1
    assert views.pop().is_ordered


@pytest.mark.req("C4")
@settings(max_examples=examples(150))
@given(arrivals())
def test_repeats_and_late_facts_leave_the_view_as_the_sorted_facts_have_it(
    facts: tuple[Fact, ...],
) -> None:
    unique = tuple(dict.fromkeys(facts))
    assert seen(facts) == seen(tuple(sorted(unique, key=lambda f: f.event)))


@pytest.mark.req("C4")
@pytest.mark.parametrize("older, newer", [("v2", "v10"), ("1.9", "1.10"), ("a", "b"), ("7", "7b")])
@pytest.mark.parametrize("events", [("e1", "e2"), ("e2", "e1")])
def test_of_one_moment_the_version_that_is_called_higher_is_the_newer(
    older: str, newer: str, events: tuple[str, str]
) -> None:
    # Many sources tell whole seconds: two contents of one second must not be left to a hash.
    facts = [
        Fact("version", event, n, version=name, at_us=7, name=f"{name}.pdf")
        for n, (event, name) in enumerate(zip(events, (newer, older), strict=True), 1)
    ]
    found = view(facts)
    assert (found.current, found.name) == (newer, f"{newer}.pdf")
    timed = [replace(fact, value="2026-11-30T10:00:00+00:00") for fact in facts]
    assert (view(timed).current, view(timed).name) == (newer, f"{newer}.pdf")


@pytest.mark.req("C4")
@pytest.mark.parametrize("events", [("e1", "e2"), ("e2", "e1")])
def test_of_one_moment_the_name_of_the_newer_version_holds(events: tuple[str, str]) -> None:
    late = Fact("version", events[0], 2, version="9", value=comparable("9", "integer"), at_us=7)
    new = Fact("version", events[1], 1, version="10", value=comparable("10", "integer"), at_us=7)
    deleted = Fact("deleted", "e0", 3, at_us=3)
    facts = [replace(new, name="new.pdf"), replace(late, name="old.pdf"), deleted]
    assert view(facts).name == "new.pdf"


# -- (b) drained last ------------------------------------------------------------------------------


def _outcome(world: World) -> Any:
    current = world.file.versions.get(world.file.view.current)
    made = [world.file.made[key] for key in sorted(current.outputs.values())] if current else []
    messages = {(m.id, m.type, m.version, m.meaning) for m in world.file.messages.values()}
    return made, messages


@pytest.mark.req("C4", "E2")
@pytest.mark.parametrize("versions", ["latest", "all"])
@settings(max_examples=examples(60), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(facts=fact_sets(5), data=st.data())
def test_drained_last_every_order_gives_the_same_artifacts_and_messages(
    versions: Any, facts: tuple[Fact, ...], data: st.DataObject
) -> None:
    recipe = replace(INVOICES, versions=versions)
    orders = [facts, *(tuple(data.draw(st.permutations(facts))) for _ in range(4))]
    outcomes = []
    for order in orders:
        world = told(World(recipes=(recipe,)), order)
        world.work()
        outcomes.append(_outcome(world))
    assert all(outcome == outcomes[0] for outcome in outcomes)


# -- (c) interleaved in any way --------------------------------------------------------------------

OUTCOMES = ("done", "done", "again", "uncounted", "dead", "lost", "unclear")
ACTS = ("fact", "fact", "claim", "end", "do", "do", "jobs", "order")
STEPS = st.tuples(st.sampled_from(ACTS), st.sampled_from(OUTCOMES), st.integers(0, 99))
Step = tuple[str, str, int]


class Actors:
    """What sources, workers and operators do to a world, chosen by numbers."""

    def __init__(self, world: World, facts: tuple[Fact, ...], *, retry: RetryPolicy) -> None:
        self.world = world
        self.facts = list(facts)
        self.retry = retry
        self.told: list[Fact] = []

    def step(self, what: str, how: str, choice: int) -> None:
        match what:
            case "fact":
                self.fact(choice)
            case "claim":
                self.claim(choice)
            case "end":
                self.end(how, choice)
            case "do":
                self.claim(choice)
                if self.world.leases:
                    self.finish(list(self.world.leases)[-1], how, choice)
            case "jobs":
                self.world.work_jobs()
            case _:
                self.order(choice)

    def fact(self, choice: int) -> None:
        if self.told and choice % 5 == 0:
            assert not self.world.tell(self.told[choice % len(self.told)]).events
        elif self.facts:
            self.told.append(self.facts.pop(0))
            self.world.tell(self.told[-1])

    def claim(self, choice: int) -> None:
        idle = [job.id for job in self.world.idle_jobs()]
        idle += [message.id for message in self.world.idle_messages()]
        if idle:
            self.world.claim(idle[choice % len(idle)])

    def end(self, how: str, choice: int) -> None:
        flying = list(self.world.leases)
        if flying:
            self.finish(flying[choice % len(flying)], how, choice)

    def finish(self, work: str, how: str, choice: int) -> None:
        """End a claim; where it is unclear whether the receiver had the request, it may have."""
        if work in self.world.file.jobs:
            self.world.end_job(work, _job_outcome(how), retry=self.retry)
            return
        if how in {"lost", "unclear"} and choice % 2:
            self.world.receive(work)
        self.world.end_message(work, _message_outcome(how), retry=self.retry)

    def order(self, choice: int) -> None:
        command = self.operator_command(choice)
        if command is None:
            return
        if isinstance(self.world.submit(command), Decision):
            again = decide(self.world.file, command, self.world.context)
            assert not isinstance(again, Decision), "an order given twice adds nothing"

    def operator_command(self, choice: int) -> c.AnyFileCommand | None:
        jobs, messages = list(self.world.file.jobs), list(self.world.file.messages)
        common: dict[str, Any] = {"stream": STREAM, "cause": OPERATOR}
        pick = choice // 8
        if jobs and choice % 8 < 3:
            job = jobs[pick % len(jobs)]
            return (c.RetryJob, c.CancelJob, c.DiscardJob)[choice % 8](job=job, **common)
        if messages and choice % 8 < 6:
            message = messages[pick % len(messages)]
            resolve: tuple[Any, ...] = ("resend", "delivered", "discard")
            outcome = resolve[choice % 3]
            return c.ResolveMessage(message=message, outcome=outcome, **common)
        if choice % 8 == 6:
            recipes = (INVOICES, INVOICES_2)
            self.world.recipes = (recipes[pick % 2],)
            return c.Reprocess(**common)
        rest = (c.HoldFile, c.ReleaseFile, c.EraseFile)
        return rest[pick % 3](**common)

    def drain(self) -> None:
        """Let everything that is left happen, and succeed; settle by hand what is stuck."""
        for fact in self.facts:
            self.world.tell(fact)
        for _ in range(6):
            self.world.work()
            for message in tuple(self.world.file.messages.values()):
                if message.phase in {"held", "dead"}:
                    self.settle(message.id)
        self.world.work()

    def settle(self, message: str) -> None:
        """Send it again; what is not so any more is given up, for it may block what is."""
        outcomes: tuple[Literal["resend", "discard"], ...] = ("resend", "discard")
        for outcome in outcomes:
            order = c.ResolveMessage(
                stream=STREAM, cause=OPERATOR, message=message, outcome=outcome
            )
            if isinstance(self.world.submit(order), Decision):
                return


def _job_outcome(how: str) -> c.JobOutcome | None:
    outcomes: dict[str, c.JobOutcome] = {
        "again": Again("busy"),
        "uncounted": Again("locked", counted=False),
        "dead": Dead("encrypted"),
        "lost": c.Lost(),
    }
    return outcomes.get(how)


def _message_outcome(how: str) -> c.MessageOutcome | None:
    outcomes: dict[str, c.MessageOutcome] = {
        "again": Again("answered 503"),
        "uncounted": Again("paused", counted=False),
        "dead": Dead("answered 422"),
        "lost": c.Lost(),
        "unclear": Unclear("no answer"),
    }
    return outcomes.get(how)


def _destination(draw: Any) -> Destination:
    return Destination(
        name="erp",
        types=ALL_TYPES,
        superseded=draw(st.sampled_from(("skip", "send"))),
        unclear=draw(st.sampled_from(("resend", "ask", "hold"))),
    )


def _true_of(file: File) -> set[str] | None:
    """What a receiver may hold true in the end; None where an operator's order decided that."""
    current = file.versions.get(file.view.current)
    if current is None:
        return {"", "file.deleted"}
    match current.phase:
        case "completed":
            return {f"file.version.completed:{current.version}"}
        case "failed" if not current.step.startswith(NOTIFY):
            return {f"file.version.failed:{current.version}"}
        case _:
            return None


@pytest.mark.req("C4", "E2", "E7")
@pytest.mark.parametrize("versions", ["latest", "all"])
@settings(max_examples=examples(500), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(facts=fact_sets(), steps=st.lists(STEPS, max_size=40), data=st.data())
def test_interleaved_in_any_way_the_last_message_means_what_the_view_says(
    versions: Any, facts: tuple[Fact, ...], steps: list[Step], data: st.DataObject
) -> None:
    recipe = replace(INVOICES, versions=versions)
    # Whoever wants all versions wants them in order: else a receiver that goes by sequences may
    # drop the current one for a slower old one. The page on the state machine says so.
    in_order = versions == "all"
    world = World(recipes=(recipe,), destinations=(_destination(data.draw),), in_order=in_order)
    actors = Actors(world, tuple(data.draw(st.permutations(facts))), retry=FIVE_TRIES)
    for what, how, choice in steps:
        if what != "order":
            actors.step(what, how, choice)
    actors.drain()
    world.check_log()
    note(f"{[(s.type, s.version, s.sequence) for s in world.seen]}")
    possible = _true_of(world.file)
    assert possible is not None
    assert world.belief() in possible
    if world.file.view.is_present:
        assert world.effects()[-1].name == world.file.view.name
    _check_nothing_hangs(world)


def _check_nothing_hangs(world: World) -> None:
    hanging = {"received", "downloading", "transforming", "notifying"}
    for version in world.file.versions.values():
        assert version.phase not in hanging, version
        if world.is_wanted(version.version):
            assert version.phase in {"completed", "failed", "discarded"}, version


@pytest.mark.req("C1", "F2")
@pytest.mark.parametrize("versions", ["latest", "all"])
@settings(max_examples=examples(500), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(facts=fact_sets(), steps=st.lists(STEPS, max_size=50), data=st.data())
def test_no_order_of_an_operator_breaks_the_machine_at_any_time(
    versions: Any, facts: tuple[Fact, ...], steps: list[Step], data: st.DataObject
) -> None:
    recipe = replace(INVOICES, versions=versions)
    world = World(recipes=(recipe,), destinations=(_destination(data.draw),))
    actors = Actors(world, tuple(data.draw(st.permutations(facts))), retry=FIVE_TRIES)
    for what, how, choice in steps:
        actors.step(what, how, choice)
    actors.drain()
    world.check_log()
    _check_nothing_hangs(world)
    sequences = [m.sequence for m in world.file.messages.values()]
    assert sequences == sorted(set(sequences))


# -- (d) replays -----------------------------------------------------------------------------------


@pytest.mark.req("B9", "F3")
@settings(max_examples=examples(400))
@given(facts=fact_sets(), steps=st.lists(STEPS, max_size=40))
def test_an_erased_file_equals_the_fold_of_its_erased_events(
    facts: tuple[Fact, ...], steps: list[Step]
) -> None:
    world = World()
    actors = Actors(world, facts, retry=FIVE_TRIES)
    for what, how, choice in steps:
        actors.step(what, how, choice)
    if not world.file.facts:
        return
    world.submit(c.ReleaseFile(stream=STREAM, cause=OPERATOR))
    world.submit(c.EraseFile(stream=STREAM, cause=OPERATOR))
    assert fold(_blank(event) for event in world.events) == world.file


def _blank(event: Any) -> Any:
    kind: Any = type(event)
    return replace(event, **dict.fromkeys(private_fields(kind), ""))

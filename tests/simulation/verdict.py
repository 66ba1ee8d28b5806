"""What a finished simulation is judged by: nothing lost, nothing twice, nothing left lying."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

from domain.ids import derive
from domain.states import File, current_result
from tests.simulation.installation import KEY
from tests.simulation.plans import Statement, expected
from tests.simulation.receivers import Receiver
from tests.simulation.simulation import Simulation

HANGING = {"received", "downloading", "transforming", "notifying"}


@dataclass(frozen=True, slots=True)
class Figures:
    """What one seed amounted to."""

    seed: int
    steps: int
    days: float
    events: int
    messages: int
    repeats: int
    faults: tuple[str, ...] = ()


def judged(seed: int) -> Figures:
    """Run one seed; a broken law is a fault, with the words in which it was broken."""
    world = Simulation(seed)
    try:
        world.run()
        faults = tuple(fault for name in world.plans for fault in faults_of(world, name))
    except AssertionError as broken:
        faults = (f"{broken}" or "a law was broken",)
    known = world.installation
    return Figures(
        seed=seed,
        steps=world.steps,
        days=world.days,
        events=sum(map(len, known.logs.values())),
        messages=len(known.bodies),
        repeats=sum(receiver.repeats for receiver in world.receivers.values()),
        faults=faults,
    )


def faults_of(world: Simulation, name: str) -> list[str]:
    """What is not as the oracle has it, for one file."""
    file = world.installation.files[derive(KEY, "fil", "s", name)]
    found = [f"{name}: {fault}" for fault in _unfinished(file)]
    for who, receiver in world.receivers.items():
        found += [f"{name} at {who}: {f}" for f in _lost(file, world.plans[name], receiver)]
        found += [f"{name} at {who}: {f}" for f in _doubled(name, receiver)]
    return found + [f"{name}: {f}" for f in _artifacts(file, world.plans[name])]


def _unfinished(file: File) -> list[str]:
    versions = [v.version for v in file.versions.values() if v.phase in HANGING]
    jobs = [job.id for job in file.jobs.values() if job.is_open]
    messages = [message.id for message in file.messages.values() if message.is_open]
    return [f"left lying: {each}" for each in (*versions, *jobs, *messages)]


def _lost(file: File, plan: tuple[Statement, ...], receiver: Receiver) -> list[str]:
    wanted = expected(plan)
    belief = receiver.belief(file.file_id)
    if wanted.meaning == "file.deleted" and belief is None:
        return []
    if belief is None:
        return [f"lost: {wanted.meaning} was never told"]
    found = [] if belief.meaning == wanted.meaning else [f"lost: holds {belief.meaning} true"]
    # Of a step that is not required, a message says what there was when it was made.
    optional = {(step, digest) for step, digest in wanted.artifacts if step == "preview"}
    if not wanted.artifacts - optional <= belief.artifacts <= wanted.artifacts:
        found.append("lost: it has other artifacts")
    if wanted.meaning != "file.deleted":
        latest = receiver.effects[file.file_id][-1].name
        found += [] if latest == wanted.name else [f"lost: the name, {latest!r}"]
    return found


def _doubled(name: str, receiver: Receiver) -> list[str]:
    told = [effect for effect in receiver.effects[name] if effect.meaning]
    return [f"doubled: {one.meaning}" for one, next_one in pairwise(told) if one == next_one]


def _artifacts(file: File, plan: tuple[Statement, ...]) -> list[str]:
    ids = [artifact.id for made in file.made.values() for artifact in made]
    found = ["doubled: an artifact"] if len(ids) != len(set(ids)) else []
    wanted = expected(plan)
    if wanted.artifacts:
        version = file.versions[current_result(file)]
        current = {(a.name, a.sha256) for key in version.result.values() for a in file.made[key]}
        found += [] if current == wanted.artifacts else ["lost: the current result is another"]
    return found

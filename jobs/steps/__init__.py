"""Transformations: what a recipe can use, and how one is performed under limits."""

from __future__ import annotations

import dataclasses
import importlib.metadata
import stat
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path

from domain.outcomes import Again, Dead, Done
from domain.recipes import Parameter, Step
from jobs.sandbox import MIB, Answered, Crashed, Limits, Lost, Overrun, Sandbox
from jobs.steps import (
    archive,
    checksum,
    child,
    command,
    http,
    media,
    metadata,
    parameters,
    pdf,
    preview,
)
from jobs.steps import text as text_step
from jobs.steps.kinds import (
    ChildTask,
    Hopeless,
    Made,
    NotApplicable,
    Output,
    Postponed,
    Said,
    StepKind,
    StepTask,
)

__all__ = [
    "PRELOADED",
    "STEPS",
    "Limits",
    "NotApplicable",
    "Output",
    "Post",
    "StepKind",
    "StepTask",
    "installed",
    "parse_parameters",
    "perform",
    "pinned",
]

PLUGINS = "laufzettel.steps"
STEPS: Mapping[str, StepKind] = {
    module.KIND.use: module.KIND
    for module in (text_step, preview, metadata, checksum, pdf, archive, command, http)
}
# What the sandbox loads once, so that no task waits for it.
PRELOADED = (
    "pypdfium2",
    "PIL.Image",
    "PIL.ImageOps",
    "PIL.PngImagePlugin",
    "PIL.JpegImagePlugin",
    "html.parser",
    "jobs.steps.child",
    "jobs.steps",
)
# A second try that ends the same way proves that the file is the reason.
_LAST_CHANCE = 2

# Carries a file to a service and its answer back, for steps whose place is the network.
Post = Callable[[ChildTask], Said | NotApplicable | Again]
Performed = Done[tuple[Output, ...]] | Done[NotApplicable] | Again | Dead


@cache
def installed() -> Mapping[str, StepKind]:
    """Our own steps, and those that other distributions offer; nobody can replace one of ours."""
    offered = importlib.metadata.entry_points(group=PLUGINS)
    found = {kind.use: kind for entry in offered if isinstance(kind := entry.load(), StepKind)}
    return {**found, **STEPS}


def parse_parameters(
    use: str, table: Mapping[str, object]
) -> tuple[tuple[str, Parameter], ...] | str:
    """A recipe's ``transforms`` table as pinned parameters; or what is wrong with it, in words."""
    if (kind := installed().get(use)) is None:
        return f"use: no step is called {use!r}; there are: {', '.join(sorted(installed()))}"
    return parameters.parse(kind, table)


def pinned(step: Step) -> Step | str:
    """A step as it is pinned: its release, every parameter checked; or what is wrong, in words."""
    if isinstance(parsed := parse_parameters(step.use, dict(step.parameters)), str):
        return parsed
    release = installed()[step.use].release
    return dataclasses.replace(step, release=release, parameters=parsed)


def perform(
    task: StepTask, *, limits: Limits, sandbox: Sandbox, post: Post | None = None
) -> Performed:
    """Do one step for one file: its outputs lie in ``task.folder``, checked and bounded."""
    if (kind := installed().get(task.step.use)) is None:
        return Again(reason=f"the step {task.step.use!r} is not installed on this worker")
    content = media.found(task.input_path)
    wanted = media.expected(task.media_type, task.name) or content
    given = _parameters(task, kind)
    if not media.matches(wanted, _types(kind, given)):
        return Done(NotApplicable(reason=f"not for {wanted or media.UNKNOWN}"))
    if task.input_size_bytes == 0 and not kind.takes_any_bytes:
        return Dead(reason="empty file")
    if media.contradicts(content, wanted) and not kind.takes_any_bytes:
        return Dead(reason=f"is {content}")
    inner = ChildTask(
        input_path=task.input_path.resolve(),
        input_sha256=task.input_sha256,
        media_type=wanted,
        folder=task.folder.resolve(),
        parameters=given,
        limits=_limits(limits, given, task.input_size_bytes),
    )
    said = _run(kind, inner, sandbox, post)
    return _outcome(said, task) if not isinstance(said, Again) else said


def _parameters(task: StepTask, kind: StepKind) -> dict[str, Parameter]:
    """As pinned; a parameter that the kind has learned since then gets its default."""
    return {**parameters.defaults(kind), **dict(task.step.parameters)}


def _types(kind: StepKind, given: Mapping[str, Parameter]) -> tuple[str, ...]:
    chosen = given.get("types")
    return chosen if isinstance(chosen, tuple) else kind.media_types


def _limits(limits: Limits, given: Mapping[str, Parameter], input_size_bytes: int) -> Limits:
    """A recipe may give a step more (or less) than the installation's limits."""
    timeout_s, memory_bytes = given.get("timeout_s"), given.get("memory_bytes")
    if isinstance(timeout_s, int):
        # A program may use several cores; its copy of the input lies in the same folder.
        limits = dataclasses.replace(limits, wall_s=float(timeout_s), cpu_s=4 * timeout_s + 1)
        output_bytes = limits.output_bytes + input_size_bytes
        limits = dataclasses.replace(limits, output_bytes=output_bytes, files=10 * limits.files)
    if isinstance(memory_bytes, int):
        limits = dataclasses.replace(limits, memory_bytes=memory_bytes)
    return limits


def _run(
    kind: StepKind, task: ChildTask, sandbox: Sandbox, post: Post | None
) -> Said | NotApplicable | Again | Crashed:
    if kind.place == "network":
        return post(task) if post else Again("no service can be asked here", counted=False)
    if kind.place == "worker":
        return child.call(kind.target, task)
    form = child.to_wire_task(kind.target, task)
    match sandbox.run(child.TARGET, form, folder=task.folder, limits=task.limits):
        case Answered(value):
            return child.from_wire_said(value) or Crashed(how="no answer")
        case Overrun("wall" | "cpu"):
            return Hopeless(reason="took too long")
        case Overrun("memory"):
            # Which of the two it would have become, nobody waited for.
            enough = f"{task.limits.memory_bytes // MIB} MiB of memory are not enough"
            return Hopeless(reason=f"too large unpacked or took too long, {enough}")
        case Overrun(_):
            return Hopeless(reason=child.too_large(task.limits))
        case Crashed() as crashed:
            return crashed
        case Lost():
            return Again(reason="the sandbox was stopped", counted=False)


def _outcome(said: Said | NotApplicable | Crashed, task: StepTask) -> Performed:
    match said:
        case NotApplicable():
            return Done(said)
        case Hopeless(reason):
            return Dead(reason=reason)
        case Postponed(reason, is_last_chance):
            return _once_more(reason, task) if is_last_chance else Again(reason=reason)
        case Crashed(how):
            return _once_more(f"crashed ({how})", task)
        case made:
            outputs = _outputs(made, task)
            return Done(outputs) if outputs else _once_more("no output", task)


def _once_more(reason: str, task: StepTask) -> Again | Dead:
    return Dead(reason=reason) if task.attempt >= _LAST_CHANCE else Again(reason=reason)


def _outputs(made: tuple[Made, ...], task: StepTask) -> tuple[Output, ...]:
    """What was said to be made, as far as it is really there; () if anything is missing."""
    outputs = tuple(
        Output(
            name=task.step.name if number == 1 else f"{task.step.name}-{number}",
            path=task.folder / item.file,
            media_type=item.media_type,
            note=item.note,
        )
        for number, item in enumerate(made, start=1)
    )
    return outputs if all(_is_plain_file(output.path, task.folder) for output in outputs) else ()


def _is_plain_file(path: Path, folder: Path) -> bool:
    """No link, no folder, nothing elsewhere: a child may have been taken over by its file."""
    try:
        return path.parent == folder and stat.S_ISREG(path.lstat().st_mode)
    except OSError:
        return False

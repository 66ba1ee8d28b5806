"""The parts of a configuration, one line each, and what each of them lacks on this machine."""

from __future__ import annotations

import shutil
from collections.abc import Iterator

from app.config import Config, Finding, Problem, findings
from domain.recipes import Step


def described(config: Config) -> Iterator[str]:
    """One line a part: what it is, in the words of the file."""
    installation = config.installation
    yield f"database     {installation.database.shown}"
    yield f"broker       {installation.broker.shown}"
    yield f"artifacts    {installation.artifacts.shown}"
    for source in config.sources:
        count = len(source.secrets)
        secrets = f"{count} secret{'' if count == 1 else 's'}"
        yield f"source       {source.name}: {source.ready.profile.name}, {secrets}"
    for configured in config.recipes:
        recipe = configured.recipe
        steps = ", ".join(step.name for step in recipe.steps) or "no transformation"
        yield f"recipe       {recipe.name}: {steps}; tells {', '.join(recipe.notify) or 'nobody'}"
    for destination in config.destinations:
        yield f"destination  {destination.name}: {', '.join(destination.types)}"


def findings_of_parts(config: Config) -> tuple[Finding, ...]:
    """The findings in the file, and those that this machine adds."""
    steps = (
        Finding("error", problem)
        for configured in config.recipes
        for place, step in enumerate(configured.recipe.steps)
        for problem in _of_step(
            config, f"recipes.{configured.recipe.name}.transforms[{place}]", step
        )
    )
    return (*findings(config), *steps, *_of_traces(config))


def _of_traces(config: Config) -> Iterator[Finding]:
    from app.compose.tracing import traces_missing

    if missing := traces_missing(config):
        yield Finding("error", missing)


def _of_step(config: Config, key: str, step: Step) -> Iterator[Problem]:
    from app.compose.preparing import problem_of_step
    from jobs.steps import installed, pinned

    if isinstance(ready := pinned(step), str):
        yield problem_of_step(config, key, ready)
        return
    run = dict(ready.parameters).get("run")
    own = run[:1] if step.use == "command" and isinstance(run, tuple) else ()
    for program in (*installed()[step.use].tools, *own):
        if shutil.which(program) is None:
            what = f"there is no program {program}, which the step needs"
            yield Problem(config.path.name, key, what, "install it, or write its whole path")

"""Between the sandbox, which knows only JSON, and the functions of the steps."""

from __future__ import annotations

import errno
import importlib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from domain.recipes import Parameter
from jobs.sandbox.limits import Limits, from_wire, to_wire
from jobs.steps.kinds import ChildTask, Hopeless, Made, Postponed, Said

TARGET = f"{__name__}:perform"


def to_wire_task(target: str, task: ChildTask) -> dict[str, Any]:
    """The task as JSON can carry it."""
    return {
        "target": target,
        "input_path": str(task.input_path),
        "input_sha256": task.input_sha256,
        "media_type": task.media_type,
        "folder": str(task.folder),
        "parameters": dict(task.parameters),
        "limits": to_wire(task.limits),
    }


def perform(form: Mapping[str, Any]) -> dict[str, Any]:
    """Run the step's function here, in the child, and say what came of it as JSON."""
    task = ChildTask(
        input_path=Path(form["input_path"]),
        input_sha256=form["input_sha256"],
        media_type=form["media_type"],
        folder=Path(form["folder"]),
        parameters={key: _parameter(value) for key, value in form["parameters"].items()},
        limits=from_wire(form["limits"]),
    )
    return _to_wire_said(call(form["target"], task))


def call(target: str, task: ChildTask) -> Said:
    """Run the function that ``target`` names; running into the size limit is an answer."""
    module, _, name = target.partition(":")
    function: Callable[[ChildTask], Said] = getattr(importlib.import_module(module), name)
    try:
        return function(task)
    except OSError as error:
        if error.errno == errno.EFBIG:
            return Hopeless(reason=too_large(task.limits))
        if error.errno in {errno.ENOSPC, errno.EDQUOT}:
            return Postponed(reason="no space left for the result")
        raise


def too_large(limits: Limits) -> str:
    """The words for a result that passes the output limit."""
    return f"result larger than {limits.output_bytes // (1024 * 1024)} MiB"


def from_wire_said(form: Mapping[str, Any]) -> Said | None:
    """What the child said, or ``None`` where it said nothing that makes sense."""
    match form:
        case {"made": [*items]}:
            made = tuple(_made(item) for item in items)
            return tuple(m for m in made if m) if all(made) else None
        case {"hopeless": str(reason)}:
            return Hopeless(reason=reason)
        case {"postponed": str(reason), "is_last_chance": bool(last)}:
            return Postponed(reason=reason, is_last_chance=last)
        case _:
            return None


def _to_wire_said(said: Said) -> dict[str, Any]:
    match said:
        case Hopeless(reason):
            return {"hopeless": reason}
        case Postponed(reason, last):
            return {"postponed": reason, "is_last_chance": last}
        case made:
            return {"made": [[m.file, m.media_type, m.note] for m in made]}


def _made(item: object) -> Made | None:
    match item:
        case [str(file), str(media_type), str(note)]:
            return Made(file=file, media_type=media_type, note=note)
        case _:
            return None


def _parameter(value: Any) -> Parameter:
    return tuple(value) if isinstance(value, list) else value

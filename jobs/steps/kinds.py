"""What a step is: its kind, the task it gets, and what it may say in return."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from domain.recipes import Parameter, Step
from jobs.sandbox import Limits

ANY_TYPE = ("*/*",)


@dataclass(frozen=True, slots=True)
class StepTask:
    """One step for one file. ``folder`` is empty, and the step's own.

    ``media_type`` is what the source announced, or "". ``attempt`` counts from 1.
    """

    step: Step
    input_path: Path
    input_sha256: str
    input_size_bytes: int
    media_type: str
    name: str
    folder: Path
    attempt: int = 1


@dataclass(frozen=True, slots=True)
class Output:
    """One file that a step made. ``note`` is what people must know of it, or ""."""

    name: str
    path: Path
    media_type: str
    note: str = ""


@dataclass(frozen=True, slots=True)
class NotApplicable:
    """The step is not for files of this type; that is no error."""

    reason: str


@dataclass(frozen=True, slots=True)
class Field:
    """One parameter of a kind: its type, its default, and what values make sense.

    ``duration`` is written "5m" and kept in seconds, ``size`` "1 MiB" and kept in bytes; the key
    that is kept then ends in ``_s`` or ``_bytes``. A default of ``None`` means that the parameter
    must be given.
    """

    form: Literal["text", "address", "number", "flag", "list", "duration", "size"]
    default: Parameter | None = None
    least: int = 0
    most: int | None = None
    choices: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class StepKind:
    """A transformation that recipes can use.

    ``release`` rises when the result for the same input would change. ``target`` is the
    ``module:function`` that is called with a ``ChildTask``, in a child process or, where
    ``place`` is ``worker``, in the worker itself (only for code that no file can hurt). Of a step
    whose place is ``network`` the worker only carries the bytes, by the ``post`` of ``perform``.
    ``takes_any_bytes`` says that empty files and content of another type than announced are fine.
    ``tools`` are the programs that must be installed.
    """

    use: str
    release: int
    target: str
    media_types: tuple[str, ...] = ANY_TYPE
    fields: Mapping[str, Field] = field(default_factory=dict)
    place: Literal["child", "worker", "network"] = "child"
    takes_any_bytes: bool = False
    tools: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ChildTask:
    """What the function of a step gets. Its result may depend on nothing else.

    The file's name is not here: equal bytes give equal artifacts, whatever they are called.
    """

    input_path: Path
    input_sha256: str
    media_type: str
    folder: Path
    parameters: Mapping[str, Parameter]
    limits: Limits


@dataclass(frozen=True, slots=True)
class Made:
    """A file in the task's folder; the first is the artifact, further ones get numbers."""

    file: str
    media_type: str
    note: str = ""


@dataclass(frozen=True, slots=True)
class Hopeless:
    """The content can never be processed, for this reason."""

    reason: str


@dataclass(frozen=True, slots=True)
class Postponed:
    """It did not work this time. ``is_last_chance`` says that a second try is worth no third."""

    reason: str
    is_last_chance: bool = False


Said = tuple[Made, ...] | Hopeless | Postponed

"""Where values come from: the environment, the ``.env`` beside the file, files that are named."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

FILE_LIMIT_BYTES = 64 * 1024
_LINE = re.compile(r"(?:export\s+)?([A-Za-z_][A-Za-z0-9_]*)\s*=\s*(.*)", re.DOTALL)


def process_environment() -> Mapping[str, str]:
    """The environment of this process: read here, once, and passed on."""
    return dict(os.environ)


@dataclass(frozen=True, slots=True)
class DotEnv:
    """What a ``.env`` says, the numbers of lines that say nothing readable, and who may read it."""

    values: Mapping[str, str]
    bad_lines: tuple[int, ...] = ()
    is_open: bool = False


def read_dot_env(path: Path) -> DotEnv:
    """Read ``NAME=value`` lines; an absent file says nothing. Values are never expanded."""
    if not path.is_file():
        return DotEnv(values={})
    values: dict[str, str] = {}
    bad_lines: list[int] = []
    for number, line in enumerate(
        path.read_text(encoding="utf-8-sig", errors="replace").splitlines(), start=1
    ):
        stripped = line.strip()
        if not stripped or stripped.startswith("#"):
            continue
        found = _LINE.fullmatch(stripped)
        if found is None:
            bad_lines.append(number)
        else:
            values[found[1]] = _unquoted(found[2])
    is_open = bool(stat.S_IMODE(path.stat().st_mode) & 0o077)
    return DotEnv(values=values, bad_lines=tuple(bad_lines), is_open=is_open)


def _unquoted(text: str) -> str:
    for quote in ('"', "'"):
        if len(text) > 1 and text.startswith(quote) and text.endswith(quote):
            return text[1:-1]
    return re.split(r"\s+#", text, maxsplit=1)[0].strip()


def is_reference(text: str) -> bool:
    """Whether a string names where its value is instead of being it."""
    return text.startswith(("env:", "file:"))


@dataclass(frozen=True, slots=True)
class Missing:
    """A reference that leads to nothing: why, and what mends it."""

    why: str
    mend: str


def dereference(reference: str, *, environ: Mapping[str, str], folder: Path) -> str | Missing:
    """The value behind ``env:NAME`` or ``file:PATH``; an empty value counts as none."""
    kind, _, place = reference.partition(":")
    if kind == "env":
        return _from_environment(place, environ)
    return _from_file(folder / Path(place).expanduser(), place)


def _from_environment(name: str, environ: Mapping[str, str]) -> str | Missing:
    mend = f"set {name} in the environment or in the .env beside the file"
    if name not in environ:
        return Missing(why=f"the environment variable {name} is not set", mend=mend)
    return environ[name] or Missing(why=f"the environment variable {name} is empty", mend=mend)


def _from_file(path: Path, shown: str) -> str | Missing:
    mend = f"write the value, and nothing else, into {shown}, readable by this user"
    try:
        with path.open("rb") as file:
            content = file.read(FILE_LIMIT_BYTES + 1)
        value = content.decode().removesuffix("\n").removesuffix("\r")
    except OSError as error:
        return Missing(why=f"the file {shown} cannot be read ({error.strerror})", mend=mend)
    except UnicodeDecodeError:
        return Missing(why=f"the file {shown} is not UTF-8 text", mend=mend)
    if len(content) > FILE_LIMIT_BYTES:
        return Missing(why=f"the file {shown} is larger than 64 KiB", mend=mend)
    return value or Missing(why=f"the file {shown} is empty", mend=mend)

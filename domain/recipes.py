"""What happens to a file: recipes and their steps, pinned by digest when a version is accepted."""

from __future__ import annotations

import fnmatch
import hashlib
import json
import re
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

# Names that editors, browsers and sync clients give to files which are not finished or not meant
# for anyone: a recipe takes them only if its own name filter names them.
TEMPORARY_NAMES = (
    "~$*",
    ".~lock.*#",
    "*.part",
    "*.ocTransferId*",
    "*.crdownload",
    "*.tmp",
    ".DS_Store",
    "Thumbs.db",
    "desktop.ini",
)
_TEMPORARY = re.compile("|".join(fnmatch.translate(name) for name in TEMPORARY_NAMES))

Parameter = str | int | bool | tuple[str, ...]


# No slots in these two, for the sake of their digests, which each decision asks for.
@dataclass(frozen=True)
class Step:
    """One transformation of a recipe.

    ``use`` names the transformation, ``release`` the number of its implementation: raising it
    makes new artifacts beside the old ones. ``parameters`` are sorted by name. Times are in
    seconds and sizes in bytes where a parameter's name says so.
    """

    name: str
    use: str
    release: int = 1
    required: bool = True
    parameters: tuple[tuple[str, Parameter], ...] = ()

    @cached_property
    def digest(self) -> str:
        """What decides the result, hashed: the name and ``required`` are not part of it."""
        return _digest([self.use, self.release, self.parameters])


@dataclass(frozen=True)
class Recipe:
    """What is done with the versions that match, and who is told.

    Every filter is optional ("" or 0 for none); ``name_pattern``, ``media_type`` and ``type`` are
    shell patterns. ``versions`` is ``latest`` or ``all``.
    """

    name: str
    sources: tuple[str, ...]
    steps: tuple[Step, ...] = ()
    notify: tuple[str, ...] = ()
    versions: Literal["latest", "all"] = "latest"
    importance: Literal["normal", "high"] = "normal"
    name_pattern: str = ""
    media_type: str = ""
    type: str = ""
    project: str = ""
    max_size_bytes: int = 0

    @property
    def canonical(self) -> bytes:
        """The recipe as it is pinned: equal recipes have equal bytes, on every machine."""
        steps = [[s.name, s.use, s.release, s.required, s.parameters] for s in self.steps]
        form = {
            "name": self.name,
            "sources": self.sources,
            "steps": steps,
            "notify": self.notify,
            "versions": self.versions,
            "importance": self.importance,
            "name_pattern": self.name_pattern,
            "media_type": self.media_type,
            "type": self.type,
            "project": self.project,
            "max_size_bytes": self.max_size_bytes,
        }
        return _canonical(form)

    @cached_property
    def digest(self) -> str:
        """The SHA-256 of the canonical form, in hex."""
        return hashlib.sha256(self.canonical).hexdigest()


@dataclass(frozen=True, slots=True)
class Candidate:
    """What a recipe's filters look at."""

    source: str
    type: str
    name: str
    project: str
    media_type: str
    size_bytes: int | None


def from_canonical(form: bytes) -> Recipe:
    """Read a pinned recipe back; the inverse of ``Recipe.canonical``."""
    fields = json.loads(form)
    steps = tuple(
        Step(name, use, release, required, tuple((k, _parameter(v)) for k, v in parameters))
        for name, use, release, required, parameters in fields.pop("steps")
    )
    for key in ("sources", "notify"):
        fields[key] = tuple(fields[key])
    return Recipe(steps=steps, **fields)


def choose(recipes: Iterable[Recipe], candidate: Candidate) -> Recipe | None:
    """The first recipe that matches, in the order of the configuration; ``None`` for none."""
    return next((r for r in recipes if _matches(r, candidate)), None)


def _matches(recipe: Recipe, candidate: Candidate) -> bool:
    if candidate.source not in recipe.sources:
        return False
    if recipe.max_size_bytes and (candidate.size_bytes or 0) > recipe.max_size_bytes:
        return False
    if recipe.project and recipe.project != candidate.project:
        return False
    patterns = ((recipe.media_type, candidate.media_type), (recipe.type, candidate.type))
    if any(pattern and not fnmatch.fnmatchcase(value, pattern) for pattern, value in patterns):
        return False
    return _takes_name(recipe.name_pattern, unicodedata.normalize("NFC", candidate.name))


def _takes_name(pattern: str, name: str) -> bool:
    pattern = unicodedata.normalize("NFC", pattern)
    if _TEMPORARY.match(name):
        return pattern in TEMPORARY_NAMES
    return not pattern or fnmatch.fnmatchcase(name.lower(), pattern.lower())


def _parameter(value: object) -> Parameter:
    if isinstance(value, list):
        return tuple(str(item) for item in value)
    if isinstance(value, (str, int)):
        return value
    raise TypeError(f"a recipe's parameter cannot be {type(value).__name__}")


def _canonical(value: object) -> bytes:
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()


def _digest(value: object) -> str:
    return hashlib.sha256(_canonical(value)).hexdigest()

"""What sources say in a simulation, and what must come of it: an oracle that shares no code.

The oracle reads nothing but the plan. It knows no events, jobs or messages, only the sentence
"these statements were made about this file, so this is what everyone must have in the end".
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from random import Random
from typing import Literal

Kind = Literal["version", "renamed", "deleted", "restored"]
Fate = Literal["fine", "no download", "no text", "no preview"]


@dataclass(frozen=True, slots=True)
class Statement:
    """One thing that the source says about a file; ``place`` is its place in the source's order."""

    file: str
    event: str
    kind: Kind
    place: int
    version: int = 0
    name: str = ""


@dataclass(frozen=True, slots=True)
class Expected:
    """How a file must end. ``artifacts`` are the digests of the current result by name."""

    meaning: str
    name: str
    artifacts: frozenset[tuple[str, str]]


def plan(random: Random, file: str) -> tuple[Statement, ...]:
    """A file's life at its source, in the source's own order."""
    made = [Statement(file, f"{file}.1", "version", 1, 1, f"{file}.pdf")]
    is_present, newest = True, 1
    for place in range(2, random.randint(2, 9)):
        event = f"{file}.{place}"
        ways: tuple[Kind, ...] = ("version", "version", "renamed", "deleted")
        kind: Kind = random.choice(ways if is_present else ("version", "restored"))
        if kind == "version":
            newest += 1
            made.append(Statement(file, event, kind, place, newest, f"{file}-{newest}.pdf"))
        else:
            name = f"{file} as of {place}.pdf" if kind == "renamed" else ""
            made.append(Statement(file, event, kind, place, name=name))
        is_present = kind != "deleted"
    return tuple(made)


def fate(file: str, version: int) -> Fate:
    """What these bytes do to those who work on them."""
    die = hashlib.sha256(f"fate of {file} {version}".encode()).digest()[0]
    if die < 12:
        return "no download"
    if die < 28:
        return "no text"
    return "no preview" if die < 64 else "fine"


def content(file: str, version: int) -> str:
    """The digest of the bytes of a version."""
    return hashlib.sha256(f"{file} {version}".encode()).hexdigest()


def made_of(digest: str, step: str) -> str:
    """The digest of what a step makes of these bytes."""
    return hashlib.sha256(f"{step} of {digest}".encode()).hexdigest()


def expected(statements: tuple[Statement, ...]) -> Expected:
    """How the file must end, whatever happened on the way."""
    *_, last_named = (s for s in statements if s.name)
    *_, last_of_life = (s for s in statements if s.kind != "renamed")
    if last_of_life.kind == "deleted":
        return Expected("file.deleted", last_named.name, frozenset())
    file, newest = statements[0].file, max(s.version for s in statements)
    how = fate(file, newest)
    if how in {"no download", "no text"}:
        return Expected(f"file.version.failed:{newest}", last_named.name, frozenset())
    original = content(file, newest)
    steps = ("text",) if how == "no preview" else ("text", "preview")
    results = {("original", original), *((step, made_of(original, step)) for step in steps)}
    return Expected(f"file.version.completed:{newest}", last_named.name, frozenset(results))

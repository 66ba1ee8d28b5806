"""Receivers that follow the rules of sending: new ids, above the file's last sequence."""

from __future__ import annotations

import json
from collections import defaultdict
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Effect:
    """What a receiver did because of a message."""

    meaning: str
    generation: int
    name: str
    artifacts: frozenset[tuple[str, str]]


@dataclass(slots=True)
class Receiver:
    """Remembers what it was sent, and what it did because of it."""

    forms: dict[str, bytes] = field(default_factory=dict)
    last: dict[str, int] = field(default_factory=dict)
    effects: dict[str, list[Effect]] = field(default_factory=lambda: defaultdict(list))
    repeats: int = 0

    def take(self, message: str, data: bytes) -> None:
        """A request arrived whole."""
        if message in self.forms:
            assert self.forms[message] == data, f"{message} was sent in two forms"
            self.repeats += 1
            return
        self.forms[message] = data
        body = json.loads(data)
        about = body["data"]
        file = about["file_id"]
        if about["sequence"] <= self.last.get(file, 0):
            return
        self.last[file] = about["sequence"]
        kind, version = body["type"], about.get("version", "")
        made = frozenset((a["name"], a["sha256"]) for a in about.get("artifacts", ()))
        is_old = not about.get("current", True)
        meaning = "" if kind == "file.renamed" or is_old else f"{kind}:{version}".rstrip(":")
        self.effects[file].append(Effect(meaning, about["generation"], about["name"], made))

    def belief(self, file: str) -> Effect | None:
        """What it holds true of the file in the end."""
        return next((one for one in reversed(self.effects[file]) if one.meaning), None)

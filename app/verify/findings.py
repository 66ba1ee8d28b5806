"""What a verification found."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

MOST_LISTED = 1000

# What is done, and what there is to do.
Progress = Callable[[int, int], None]


def unheard(_: int, __: int) -> None:
    """Nobody wants to know how far it is."""


@dataclass(frozen=True, slots=True)
class Fault:
    """Where something is wrong - a position of the log, an artifact's id - and what."""

    where: str
    what: str


@dataclass(slots=True)
class Findings:
    """The faults of one part, the first ``MOST_LISTED`` by name, and what was looked at.

    ``head`` is the hash of the last position: whoever wrote it down earlier can compare.
    """

    checked: int = 0
    erased: int = 0
    position: int = 0
    head: bytes = b""
    faults: list[Fault] = field(default_factory=list)
    count: int = 0

    def add(self, where: str, what: str) -> None:
        """Count a fault, and list it while there is room."""
        self.count += 1
        if len(self.faults) < MOST_LISTED:
            self.faults.append(Fault(where, what))

    def at(self, position: int, what: str) -> None:
        """A fault at a position of the log."""
        self.add(f"position {position}", what)

    @property
    def is_sound(self) -> bool:
        """Whether nothing was found."""
        return self.count == 0

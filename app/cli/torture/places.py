"""Where a trial has its things."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Places:
    """Where the scratch area is, where the program listens in it, and who stands in for others.

    ``secret`` is what a source signs with whose own way of signing cannot be played.
    """

    folder: Path
    port: int
    outside: str
    secret: str

    @property
    def url(self) -> str:
        """The address of the program."""
        return f"http://127.0.0.1:{self.port}"

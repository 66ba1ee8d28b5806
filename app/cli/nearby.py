"""How commands on this machine find the process that owns the store: a file beside it.

It holds the process's address and a token of its own that ends with it. Only this user can read it,
who could read the store as well.
"""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass
from pathlib import Path

_LONGEST_BYTES = 4096


@dataclass(frozen=True, slots=True)
class Nearby:
    """A running process: where it listens, the token it takes, its certificate if it has one."""

    url: str
    token: str
    pid: int
    certificate: str = ""

    def __repr__(self) -> str:
        return f"Nearby(url={self.url!r}, pid={self.pid})"


def place_of(store: Path) -> Path:
    """Where the file of this store is."""
    return store.with_name(store.name + ".process")


def leave(store: Path, nearby: Nearby) -> None:
    """Leave the file, readable by this user alone, in place of one that was left before."""
    path = place_of(store)
    fresh = path.with_name(path.name + ".new")
    fresh.unlink(missing_ok=True)
    handle = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
    with os.fdopen(handle, "w", encoding="utf-8") as file:
        json.dump(asdict(nearby), file)
    fresh.replace(path)


def remove(store: Path) -> None:
    """Take the file away: the process no longer answers."""
    place_of(store).unlink(missing_ok=True)


def find(store: Path) -> Nearby | None:
    """What the last process left; whether it still answers is another question."""
    try:
        with place_of(store).open("rb") as file:
            left = json.loads(file.read(_LONGEST_BYTES))
        return Nearby(**left)
    except (OSError, ValueError, TypeError):
        return None

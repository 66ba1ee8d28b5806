"""What was seen, one JSON object a line, on disk before anyone is answered.

An outside process counts from these files, also after whoever wrote them was killed.
"""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

Entry = dict[str, Any]


class Journal:
    """Appends entries; each is on disk when ``write`` returns."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lock = threading.Lock()
        path.parent.mkdir(parents=True, exist_ok=True)
        # A killed writer may leave half a line: the next entry must not be glued to it.
        if path.exists() and not path.read_bytes().endswith(b"\n"):
            self._append(b"\n")

    def write(self, entry: Mapping[str, object]) -> None:
        """Append one entry, whole, and wait until the disk has it."""
        line = json.dumps(entry, ensure_ascii=False, separators=(",", ":")).encode() + b"\n"
        with self._lock:
            self._append(line)

    def entries(self) -> list[Entry]:
        """All that was written so far."""
        return entries(self._path)

    def _append(self, line: bytes) -> None:
        with self._path.open("ab") as file:
            file.write(line)
            file.flush()
            os.fsync(file.fileno())


def entries(path: Path) -> list[Entry]:
    """The whole entries of a journal; a line that its writer could not finish is left out."""
    if not path.exists():
        return []
    found = []
    for line in path.read_bytes().splitlines():
        try:
            entry = json.loads(line)
        except ValueError:
            continue
        if isinstance(entry, dict):
            found.append(entry)
    return found

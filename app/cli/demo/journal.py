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
        path.parent.mkdir(parents=True, exist_ok=True)
        self._path = path
        self._lock = threading.Lock()
        self._file = path.open("ab")
        self._finish_torn_line()

    def write(self, entry: Mapping[str, object]) -> None:
        """Append one entry, whole, and wait until the disk has it."""
        line = json.dumps(entry, ensure_ascii=False, separators=(",", ":")).encode() + b"\n"
        with self._lock:
            self._file.write(line)
            self._file.flush()
            os.fsync(self._file.fileno())

    def entries(self) -> list[Entry]:
        """All that was written so far."""
        return entries(self._path)

    def close(self) -> None:
        """Close the file; nothing can be written any more."""
        with self._lock:
            self._file.close()

    def _finish_torn_line(self) -> None:
        # A killed writer may leave half a line: the next entry must not be glued to it.
        if self._path.stat().st_size and not self._path.read_bytes().endswith(b"\n"):
            self._file.write(b"\n")
            self._file.flush()


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

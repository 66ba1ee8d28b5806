"""Temporary files: one folder a process, one inside it a job; what the dead left is removed."""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_PREFIX = "process-"
_LOCK = ".lock"


class Scratch:
    """The scratch folder of this process, held by a lock for as long as it lives."""

    def __init__(self, folder: Path, lock: int) -> None:
        self._folder = folder
        self._lock = lock

    @property
    def path(self) -> Path:
        """The process's own folder."""
        return self._folder

    @contextmanager
    def folder(self) -> Iterator[Path]:
        """A new empty folder that no other job has, removed with all in it on leaving."""
        path = Path(tempfile.mkdtemp(prefix="job-", dir=self._folder))
        try:
            yield path
        finally:
            shutil.rmtree(path, ignore_errors=True)

    def close(self) -> None:
        """Remove the process's folder and give up its lock."""
        shutil.rmtree(self._folder, ignore_errors=True)
        os.close(self._lock)


def open_scratch(root: Path) -> Scratch:
    """Remove what dead processes left under the root, and open a folder for this one."""
    root.mkdir(parents=True, exist_ok=True)
    # Under a lock on the root: a new folder is never seen before it holds its own lock.
    guard = os.open(root, os.O_RDONLY)
    try:
        fcntl.flock(guard, fcntl.LOCK_EX)
        for folder in root.glob(f"{_PREFIX}*"):
            _remove_if_dead(folder)
        folder = Path(tempfile.mkdtemp(prefix=f"{_PREFIX}{os.getpid()}-", dir=root))
        return Scratch(folder, _locked(folder))
    finally:
        os.close(guard)


def _remove_if_dead(folder: Path) -> None:
    try:
        lock = _locked(folder)
    except OSError:
        return  # its process lives
    try:
        shutil.rmtree(folder, ignore_errors=True)
    finally:
        os.close(lock)


def _locked(folder: Path) -> int:
    lock = os.open(folder / _LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(lock)
        raise
    return lock

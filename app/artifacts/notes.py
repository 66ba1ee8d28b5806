"""Small documents beside the blobs: what must outlive the database and its backups."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Protocol

import obstore
from obstore.exceptions import BaseError
from obstore.store import LocalStore, S3Store

from app.artifacts.errors import BlobsAwayError
from app.points import point

ERASURES = "erasures"
CHECKPOINTS = "checkpoints"
_NAME = re.compile(r"[a-z0-9_.-]{1,100}", re.ASCII)
_FOLDERS = frozenset({ERASURES, CHECKPOINTS})


class Writer(Protocol):
    """How a kind of store takes a small document, durably."""

    def write(self, key: str, data: bytes) -> None:
        """Store the bytes in place of what had the name before."""
        ...


class Notes:
    """Documents of a few hundred bytes, by folder and name."""

    def __init__(self, store: LocalStore | S3Store, writer: Writer) -> None:
        self._store = store
        self._writer = writer

    def put(self, folder: str, name: str, data: bytes) -> None:
        """Leave a note, durably; one of the same name is replaced."""
        if folder not in _FOLDERS or not _NAME.fullmatch(name):
            raise ValueError("a note's name is made of letters and digits")
        try:
            self._writer.write(f"{folder}/{name}", data)
        except BaseError as error:
            raise BlobsAwayError("a note could not be stored") from error

    def all(self, folder: str) -> Iterator[tuple[str, bytes]]:
        """Every note of a folder: its name and its bytes."""
        try:
            for page in obstore.list(self._store, prefix=folder):
                for entry in page:
                    path = str(entry["path"])
                    if _NAME.fullmatch(path.removeprefix(f"{folder}/")):
                        data = bytes(obstore.get(self._store, path).bytes())
                        yield path.removeprefix(f"{folder}/"), data
        except BaseError as error:
            raise BlobsAwayError("the notes could not be read") from error


class FolderWriter:
    """Notes in a folder: whole before they have their name."""

    def __init__(self, root: Path) -> None:
        self._root = root

    def write(self, key: str, data: bytes) -> None:
        """Store the bytes in place of what had the name before."""
        point("notes.put.before")
        place = self._root / key
        place.parent.mkdir(parents=True, exist_ok=True)
        fresh = place.with_name(f"{place.name}~{os.getpid()}")
        with fresh.open("wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        fresh.replace(place)
        _sync(place.parent)
        point("notes.put.after")


class BucketWriter:
    """Notes in a bucket, which answers when they are durable."""

    def __init__(self, store: S3Store) -> None:
        self._store = store

    def write(self, key: str, data: bytes) -> None:
        """Store the bytes in place of what had the name before."""
        point("notes.put.before")
        obstore.put(self._store, key, data)
        point("notes.put.after")


def _sync(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)

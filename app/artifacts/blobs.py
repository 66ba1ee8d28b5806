"""Blobs: create-if-absent under the SHA-256, ranged reads, listing for the sweep."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Protocol

import obstore
from obstore.exceptions import BaseError, NotFoundError
from obstore.store import LocalStore, S3Store

from app.artifacts.errors import (
    BlobsAwayError,
    MissingBlobError,
)
from app.artifacts.notes import Notes, Writer
from app.points import point

_DIGEST = re.compile(r"[0-9a-f]{64}", re.ASCII)
_PIECE_BYTES = 1 << 20


@dataclass(frozen=True, slots=True)
class Blob:
    """One blob as the store lists it."""

    sha256: str
    size_bytes: int
    stored_at: datetime


class Putter(Protocol):
    """How a kind of store takes a whole file, durably, if its name is free."""

    def put(self, path: Path, key: str) -> bool:
        """Store the file; return only when a power cut cannot take it away.

        Gives whether the name was free.
        """
        ...

    def delete(self, key: str) -> None:
        """Remove a name, if it is there."""
        ...

    def path_of(self, key: str) -> Path | None:
        """Where the bytes lie as a local file; ``None`` where they do not."""
        ...


# A blob that is stored while inside is removed only by who condemns it anew.
Spared = Callable[[str], AbstractContextManager[None]]


def _unguarded(_: str) -> AbstractContextManager[None]:
    return nullcontext()


class Blobs:
    """The blobs of one installation. All methods may be used by many threads and processes."""

    def __init__(self, store: LocalStore | S3Store, putter: Putter, writer: Writer) -> None:
        self._store = store
        self._putter = putter
        self.notes = Notes(store, writer)
        self._spared: Spared = _unguarded

    def guard(self, spared: Spared) -> None:
        """From now on, what is stored is spared by whoever sweeps."""
        self._spared = spared

    def put_file(self, path: Path, sha256: str) -> None:
        """Store the file's bytes under their digest, durably; what is there already stays.

        The caller has hashed the bytes. A full disk raises OSError, a store that does not answer
        BlobsAwayError.
        """
        key = _key(sha256)
        point("blobs.put.before")
        try:
            with self._spared(sha256):
                self._putter.put(path, key)
        except BaseError as error:
            raise BlobsAwayError(f"blob {sha256} could not be stored: {_kind(error)}") from error
        point("blobs.put.after")

    def exists(self, sha256: str) -> bool:
        """Whether the blob is there."""
        return self.size_bytes(sha256) is not None

    def size_bytes(self, sha256: str) -> int | None:
        """The blob's size; ``None`` if it is not there."""
        try:
            return int(obstore.head(self._store, _key(sha256))["size"])
        except (NotFoundError, FileNotFoundError):
            return None
        except BaseError as error:
            raise BlobsAwayError(f"blob {sha256} could not be looked up: {_kind(error)}") from error

    def read(self, sha256: str, start: int, end: int) -> bytes:
        """The bytes from ``start`` up to ``end``, ``end`` excluded; both lie inside the blob."""
        if start >= end:
            return b""
        try:
            return bytes(obstore.get_range(self._store, _key(sha256), start=start, end=end))
        except (NotFoundError, FileNotFoundError):
            raise MissingBlobError(f"blob {sha256} is missing") from None
        except BaseError as error:
            raise BlobsAwayError(f"blob {sha256} could not be read: {_kind(error)}") from error

    def stream(self, sha256: str, start: int = 0, end: int | None = None) -> Iterator[bytes]:
        """The bytes from ``start`` up to ``end`` in pieces of 1 MiB, in constant memory."""
        size_bytes = self.size_bytes(sha256)
        if size_bytes is None:
            raise MissingBlobError(f"blob {sha256} is missing")
        last = size_bytes if end is None else min(end, size_bytes)
        return self._pieces(sha256, start, last)

    def fetch_to(self, sha256: str, path: Path) -> None:
        """Copy a blob's bytes to a new file."""
        with path.open("xb") as file:
            file.writelines(self.stream(sha256))

    def path_of(self, sha256: str) -> Path | None:
        """The blob as a local file, to be read and never written; ``None`` off this machine."""
        path = self._putter.path_of(_key(sha256))
        return path if path is not None and path.is_file() else None

    def list(self) -> Iterator[Blob]:
        """All blobs, in pages, in no order; foreign files in the store are passed over."""
        try:
            for page in obstore.list(self._store, chunk_size=1000):
                for entry in page:
                    name = str(entry["path"]).rpartition("/")[2]
                    if _DIGEST.fullmatch(name) and str(entry["path"]).endswith(_key(name)):
                        yield Blob(name, int(entry["size"]), entry["last_modified"])
        except BaseError as error:
            raise BlobsAwayError(f"blobs could not be listed: {_kind(error)}") from error

    def delete(self, sha256: str) -> None:
        """Remove a blob, if it is there."""
        point("blobs.delete.before")
        try:
            with suppress(NotFoundError, FileNotFoundError):
                self._putter.delete(_key(sha256))
        except BaseError as error:
            raise BlobsAwayError(f"blob {sha256} could not be removed: {_kind(error)}") from error
        point("blobs.delete.after")

    def _pieces(self, sha256: str, start: int, end: int) -> Iterator[bytes]:
        for at in range(start, end, _PIECE_BYTES):
            yield self.read(sha256, at, min(at + _PIECE_BYTES, end))


def _key(sha256: str) -> str:
    """``ab/<digest>``: a name made of the digest alone, so that no input names a path."""
    if not _DIGEST.fullmatch(sha256):
        raise ValueError("a digest is 64 lower-case hexadecimal digits")
    return f"{sha256[:2]}/{sha256}"


def _kind(error: BaseError) -> str:
    # The library's text holds addresses and request bodies; its kind says enough.
    return type(error).__name__.removesuffix("Error").lower()

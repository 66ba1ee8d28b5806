"""Where blobs lie: a folder, or a bucket; each with its own way to store durably."""

from __future__ import annotations

import errno
import os
from collections.abc import Mapping
from contextlib import suppress
from datetime import timedelta
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import obstore
from obstore.exceptions import AlreadyExistsError
from obstore.store import LocalStore, S3Store

from app.artifacts.blobs import Blobs
from app.artifacts.errors import BlobsError, DamagedBlobError
from app.artifacts.notes import BucketWriter, FolderWriter
from app.points import point

_READ_ONLY = 0o440
# Up to here one conditional request; above, parts: a whole 5 GB does not fit into memory.
_ONE_REQUEST_BYTES = 16 << 20
_PART_BYTES = 8 << 20
_PARTS_AT_ONCE = 3
# The library itself would try for three minutes; a job that waits is better tried again later.
_TRIES = 3
_PATIENCE = timedelta(seconds=20)
_NO_LINKS = {errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.EMLINK, errno.ENOSYS}


def open_blobs(url: str, *, options: Mapping[str, str] | None = None) -> Blobs:
    """The blobs at ``file:FOLDER`` or ``s3://bucket/prefix?endpoint=…&region=…``.

    ``options`` are further settings of the S3 client (access_key_id and the like); without them
    it finds its credentials in the places where AWS's own tools look.
    """
    if url.startswith("file:"):
        root = _folder(url)
        try:
            root.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise BlobsError(f"{root} cannot be used ({error.strerror})") from error
        return Blobs(LocalStore(root), Folder(root), FolderWriter(root))
    if url.startswith("s3:"):
        store = _bucket(url, dict(options or {}))
        return Blobs(store, Bucket(store), BucketWriter(store))
    raise ValueError("artifacts: expected file:FOLDER or s3://bucket/prefix")


def scratch_root(url: str, otherwise: Path) -> Path:
    """Where temporary files belong: beside the blobs, so that storing is a link and not a copy."""
    return _folder(url) / ".scratch" if url.startswith("file:") else otherwise


class Folder:
    """A folder of a local or mounted file system.

    The object-store library neither links nor syncs: after a power cut "stored" would have no
    bytes. So files are synced, then linked into place, then the folder is synced.
    """

    def __init__(self, root: Path) -> None:
        self._root = root
        self._durable: set[str] = set()

    def put(self, path: Path, key: str) -> bool:
        """Store the file; return only when a power cut cannot take it away."""
        is_new = True
        place = self._root / key
        place.parent.mkdir(parents=True, exist_ok=True)
        _sync(path)
        try:
            self._link(path, place)
        except FileExistsError:
            is_new = False
            if place.stat().st_size != path.stat().st_size:
                raise DamagedBlobError(f"blob {place.name} has another size") from None
        _sync(place.parent)
        self._sync_name(place.parent)
        point("blobs.fsync.after")
        return is_new

    def delete(self, key: str) -> None:
        """Remove a name, if it is there."""
        place = self._root / key
        place.unlink(missing_ok=True)
        if place.parent.is_dir():
            _sync(place.parent)

    def path_of(self, key: str) -> Path:
        """Where the bytes lie."""
        return self._root / key

    def _link(self, path: Path, place: Path) -> None:
        # Read-only before it is seen under its digest: a careless reader cannot change it.
        path.chmod(_READ_ONLY)
        try:
            os.link(path, place)
        except OSError as error:
            if error.errno == errno.EXDEV:
                self._copy(path, place)
            elif error.errno in _NO_LINKS:
                self._copy(path, place, can_link=False)
            else:
                raise

    def _copy(self, path: Path, place: Path, *, can_link: bool = True) -> None:
        """Bring the bytes over from another file system, whole before they have the name."""
        if place.exists():
            raise FileExistsError(errno.EEXIST, "the blob is there")
        near = place.with_name(f".{place.name}.{os.getpid()}.{path.stat().st_ino}")
        try:
            with path.open("rb") as source, near.open("wb") as target:
                while piece := source.read(1 << 20):
                    target.write(piece)
            near.chmod(_READ_ONLY)
            _sync(near)
            if can_link:
                os.link(near, place)
            else:
                near.rename(place)
        finally:
            near.unlink(missing_ok=True)

    def _sync_name(self, folder: Path) -> None:
        """Make the name of the blob's folder durable, once in this process's life.

        Also of one that was there: who made it may not have come to this line. After the blob's
        own sync, because that usually has written it already.
        """
        if folder.name not in self._durable:
            _sync(self._root)
            self._durable.add(folder.name)


class Bucket:
    """A bucket that understands conditional puts."""

    def __init__(self, store: S3Store) -> None:
        self._store = store

    def put(self, path: Path, key: str) -> bool:
        """Store the file; the store answers when it is durable."""
        if path.stat().st_size <= _ONE_REQUEST_BYTES:
            try:
                obstore.put(self._store, key, path.read_bytes(), mode="create")
            except AlreadyExistsError:
                return False
            return True
        # Parts know no condition; equal names have equal bytes, so a race writes the same twice.
        with suppress(FileNotFoundError):
            if obstore.head(self._store, key)["size"] == path.stat().st_size:
                return False
        obstore.put(self._store, key, path, chunk_size=_PART_BYTES, max_concurrency=_PARTS_AT_ONCE)
        return True

    def delete(self, key: str) -> None:
        """Remove a name, if it is there."""
        obstore.delete(self._store, key)

    def path_of(self, key: str) -> None:
        """Nowhere on this machine."""
        del key


def _folder(url: str) -> Path:
    path = url.removeprefix("file:")
    return Path("/" + path.lstrip("/") if path.startswith("//") else path).absolute()


def _bucket(url: str, options: dict[str, str]) -> S3Store:
    parts = urlsplit(url)
    asked = dict(parse_qsl(parts.query))
    if not parts.hostname or (unknown := asked.keys() - {"endpoint", "region"}):
        raise ValueError(f"artifacts: {'no bucket' if not parts.hostname else sorted(unknown)}")
    settings: Any = {"region": asked.get("region", "us-east-1"), **options}
    if endpoint := asked.get("endpoint"):
        settings |= {"endpoint": endpoint, "virtual_hosted_style_request": False}
    client: Any = {"allow_http": (endpoint or "").startswith("http://")}
    try:
        return S3Store(
            parts.netloc,
            prefix=parts.path.strip("/") or None,
            config=settings,
            client_options=client,
            retry_config={"max_retries": _TRIES, "retry_timeout": _PATIENCE},
        )
    except Exception as error:
        raise BlobsError("the bucket's settings are not valid") from error


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)

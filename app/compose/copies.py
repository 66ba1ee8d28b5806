"""Backup, restore, move: the store as one file, or straight into another database."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import os
import tarfile
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

from app.artifacts import ERASURES, Blobs, MissingBlobError
from app.ledger import Ledger
from app.ledger.requests import Order, Recorded
from app.points import point
from app.store import checkpoints, copying, installation, migrate, projections, signing
from app.store.engine import Connection, Store
from app.store.errors import SchemaError, StoreError
from app.store.reading import erasures
from domain.commands import Cause, EraseFile, ReleaseFile

FORMAT = "laufzettel.backup.1"
_MANIFEST = "manifest.json"
_LENGTH_BYTES = 4
_LONGEST_ROW = 1 << 30
_CAUSE = Cause("system", "restore", reason="erased before; a backup brought it back")
Progress = Callable[[int, int], None]


class BackupError(StoreError):
    """The file is no backup, or is not whole."""


@dataclass(slots=True)
class Restored:
    """What a restore brought back, and what is left to do by hand."""

    incarnation: int
    position: int
    made_ms: int
    rows: int
    artifacts: int = 0
    missing: list[str] = field(default_factory=list)
    erased: list[str] = field(default_factory=list)
    sources: dict[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Mark:
    """When a restore happens, and fresh chance for its event."""

    at_ms: int
    salt: bytes


def unheard(_: int, __: int) -> None:
    """Nobody wants to know how far it is."""


# -- backup ---------------------------------------------------------------------------------------


def backup(
    store: Store,
    place: Path,
    *,
    now_ms: int,
    blobs: Blobs | None = None,
    progress: Progress = unheard,
) -> dict[str, Any]:
    """Write the store as it is at one moment, with artifacts if blobs are given; the manifest.

    The file is there whole or not at all. Raises ``StoreError``.
    """
    migrate.check_same(store)
    unfinished = place.with_name(f"{place.name}.unfinished")
    handle = os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    try:
        with os.fdopen(handle, "wb") as file:
            with tarfile.open(fileobj=file, mode="w") as tar, store.snapshot() as connection:
                manifest = _written(connection, tar, now_ms, progress)
                if blobs is not None:
                    _add_artifacts(tar, blobs, copying.digests(connection))
            file.flush()
            os.fsync(file.fileno())
        unfinished.replace(place)
    finally:
        unfinished.unlink(missing_ok=True)
    return manifest


def _written(
    connection: Connection, tar: tarfile.TarFile, now_ms: int, progress: Progress
) -> dict[str, Any]:
    stands = checkpoints.standing(connection)
    if stands is None:
        raise BackupError("there is nothing in the store yet; start with laufzettel run")
    counts = {}
    for number, name in enumerate(copying.NAMES, start=1):
        counts[name] = _add_table(tar, name, copying.rows(connection, name))
        progress(number, len(copying.NAMES))
    manifest = signing.signed(
        stands.key,
        {
            "kind": FORMAT,
            "schema": migrate.newest(),
            "made_ms": now_ms,
            "checkpoint": checkpoints.checkpoint(stands, now_ms),
            "tables": {
                name: {"columns": copying.columns(name), "rows": count}
                for name, count in counts.items()
            },
        },
    )
    _add(tar, _MANIFEST, json.dumps(manifest, indent=2).encode())
    return manifest


def _add_table(tar: tarfile.TarFile, name: str, rows: Iterator[bytes]) -> int:
    """A table as length-framed rows, compressed; its size is known only once it is written."""
    count = 0
    with tempfile.TemporaryFile() as file:
        with gzip.GzipFile(fileobj=file, mode="wb", compresslevel=3, mtime=0) as packed:
            for row in rows:
                packed.write(len(row).to_bytes(_LENGTH_BYTES, "big") + row)
                count += 1
        member = _member(f"tables/{name}", file.tell())
        file.seek(0)
        tar.addfile(member, file)
    return count


def _add_artifacts(tar: tarfile.TarFile, blobs: Blobs, digests: list[str]) -> None:
    for digest in digests:
        with tempfile.TemporaryFile() as file:
            try:
                file.writelines(blobs.stream(digest))
            except MissingBlobError:
                continue  # the restore names it
            member = _member(f"artifacts/{digest}", file.tell())
            file.seek(0)
            tar.addfile(member, file)


def _add(tar: tarfile.TarFile, name: str, data: bytes) -> None:
    tar.addfile(_member(name, len(data)), io.BytesIO(data))


def _member(name: str, size_bytes: int) -> tarfile.TarInfo:
    member = tarfile.TarInfo(name)
    member.size, member.mode = size_bytes, 0o600
    return member


# -- restore --------------------------------------------------------------------------------------


def restore(
    store: Store, blobs: Blobs, place: Path, *, mark: Mark, progress: Progress = unheard
) -> Restored:
    """Bring a backup back into an empty store, as a new incarnation of its log.

    All rows and the mark of the new incarnation come in one transaction. What follows them may be
    begun again: until ``end`` no process serves from the store. Raises ``StoreError``.
    """
    try:
        with tarfile.open(place, mode="r:") as tar:
            manifest = _manifest(tar)
            incarnation, rows = _begun(store, manifest) or _filled(
                store, tar, manifest, mark, progress
            )
            found = Restored(
                incarnation,
                int(manifest["checkpoint"]["position"]),
                int(manifest["made_ms"]),
                rows,
            )
            found.artifacts = _bring_artifacts(tar, blobs)
    except (tarfile.TarError, OSError, EOFError, ValueError, KeyError) as error:
        raise BackupError(f"{place} is no whole backup ({type(error).__name__})") from error
    with store.read() as connection:
        found.missing = [d for d in copying.digests(connection) if not blobs.exists(d)]
        found.sources = copying.sources(connection)
    return found


def end(store: Store) -> None:
    """All that belongs to a restore is done: the store may be served from."""
    with store.writing.begin() as connection:
        copying.end_restore(connection)
        point("restore.end.before")
    point("restore.end.after")


def _begun(store: Store, manifest: dict[str, Any]) -> tuple[int, int] | None:
    """The incarnation of a restore of this backup that died after its rows were here."""
    with store.read() as connection:
        if copying.open_restore(connection) != _name(manifest):
            return None
        identity = installation.find(connection)
    return None if identity is None else (identity.incarnation, 0)


def _name(manifest: dict[str, Any]) -> str:
    return f"{manifest['made_ms']} {manifest['checkpoint']['hash']}"


def _filled(
    store: Store, tar: tarfile.TarFile, manifest: dict[str, Any], mark: Mark, progress: Progress
) -> tuple[int, int]:
    """The new incarnation, and how many rows came."""
    with store.writing.begin() as connection:
        _refuse_full(connection)
        rows = _fill(connection, tar, manifest, progress)
        copying.settle(connection)
        incarnation = copying.restored(connection, at_ms=mark.at_ms, salt=mark.salt)
        copying.settle(connection)
        copying.begin_restore(connection, _name(manifest), mark.at_ms)
        point("restore.commit.before")
    point("restore.commit.after")
    return incarnation, rows


def _manifest(tar: tarfile.TarFile) -> dict[str, Any]:
    manifest: dict[str, Any] = json.loads(_read(tar, _MANIFEST).read())
    if manifest.get("kind") != FORMAT or signing.signer_of(manifest) is None:
        raise BackupError("the backup's manifest was changed, or is of another kind")
    if not migrate.fits(manifest["schema"]):
        raise SchemaError(
            f"the backup is of schema {manifest['schema']}, which does not go into this program's, "
            f"{migrate.newest()}; restore it with the version that made it, then migrate"
        )
    return manifest


def _refuse_full(connection: Connection) -> None:
    if not copying.is_empty(connection):
        raise StoreError("the store is not empty; name another database, or move this one away")


def _fill(
    connection: Connection, tar: tarfile.TarFile, manifest: dict[str, Any], progress: Progress
) -> int:
    """Insert all rows; those of an older schema leave out what was added to it since."""
    total, tables = 0, manifest["tables"]
    if not tables.keys() <= set(copying.NAMES):
        raise BackupError("the backup has tables that nobody knows")
    for number, name in enumerate([n for n in copying.NAMES if n in tables], start=1):
        told = tables[name]
        if not set(told["columns"]) <= set(copying.columns(name)):
            raise BackupError(f"the table {name} of the backup has other columns")
        rows = _rows(_read(tar, f"tables/{name}"))
        count = copying.fill(connection, name, told["columns"], rows)
        if count != told["rows"]:
            raise BackupError(f"the table {name} of the backup is not whole")
        total += count
        progress(number, len(tables))
    return total


def _rows(packed: IO[bytes]) -> Iterator[bytes]:
    with gzip.GzipFile(fileobj=packed, mode="rb") as rows:
        while head := rows.read(_LENGTH_BYTES):
            length = int.from_bytes(head, "big")
            row = rows.read(min(length, _LONGEST_ROW))
            if len(row) != length:
                raise BackupError("the backup ends in the middle of a row")
            yield row


def _read(tar: tarfile.TarFile, name: str) -> IO[bytes]:
    file = tar.extractfile(name)
    if file is None:
        raise BackupError(f"the backup has no {name}")
    return file


def _bring_artifacts(tar: tarfile.TarFile, blobs: Blobs) -> int:
    count = 0
    with tempfile.TemporaryDirectory() as folder:
        for member in tar:
            if not member.name.startswith("artifacts/"):
                continue
            digest = member.name.removeprefix("artifacts/")
            path = Path(folder) / "blob"
            if _unpacked(_read(tar, member.name), path) != digest:
                raise BackupError("an artifact of the backup has other bytes than its digest")
            blobs.put_file(path, digest)
            path.unlink()
            count += 1
    return count


def _unpacked(source: IO[bytes], path: Path) -> str:
    digest = hashlib.sha256()
    with path.open("wb") as file:
        while piece := source.read(1 << 20):
            digest.update(piece)
            file.write(piece)
    return digest.hexdigest()


def erase_again(store: Store, ledger: Ledger, blobs: Blobs) -> list[str]:
    """Erase what was erased since the backup was made; the files that it was."""
    done = []
    for _, data in blobs.notes.all(ERASURES):
        note = erasures.read_note(data)
        if note is None or not _is_back(store, *note):
            continue
        stream, _ = note
        ledger.submit(Order(ReleaseFile(stream=stream, cause=_CAUSE))).result()
        answer = ledger.submit(Order(EraseFile(stream=stream, cause=_CAUSE))).result()[0]
        if isinstance(answer, Recorded):
            done.append(stream)
    return done


def _is_back(store: Store, stream: str, at_ms: int) -> bool:
    """Whether the store has the file, and nothing of the erasure that the note is about."""
    with store.read() as connection:
        file = projections.load(connection, [stream])[stream]
        last = erasures.last(connection, stream)
    # Clocks of processes differ a little, and the note is written after the event.
    return file.revision > 0 and (last is None or last.recorded.event.at_ms < at_ms - 60_000)


# -- move -----------------------------------------------------------------------------------------


def move(source: Store, target: Store, *, progress: Progress = unheard) -> dict[str, int]:
    """Copy the store into an empty one of any kind: the same hashes, receipts and ids."""
    migrate.check_same(source)
    counts = {}
    with source.snapshot() as old, target.writing.begin() as new:
        _refuse_full(new)
        if copying.is_in_use(old):
            raise StoreError("processes are at work on this store; stop them first")
        for number, name in enumerate(copying.NAMES, start=1):
            counts[name] = copying.fill(new, name, copying.columns(name), copying.rows(old, name))
            progress(number, len(copying.NAMES))
        copying.settle(new)
        point("move.commit.before")
    point("move.commit.after")
    return counts

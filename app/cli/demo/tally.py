"""The reckoning, from outside: two journals and a folder of bytes, held against the oracle."""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from app.cli.demo.journal import Entry, entries
from app.cli.demo.oracle import Heard, expected
from app.cli.demo.script import Scene

_ANSWERS = {202: "accepted", 200: "duplicate", 409: "conflict", 401: "forged", 0: "not answered"}
_DIGEST = re.compile(r"[0-9a-f]{64}")
_FINISHED = frozenset({"file.version.completed", "file.version.failed"})


@dataclass(frozen=True, slots=True)
class Tally:
    """What was counted. ``faults`` says in words what is not as it should be."""

    files: int
    versions: int
    deliveries: dict[str, int]
    downloads: int
    artifacts: int
    blobs: int
    sent: int
    received: int
    duplicates: int
    second_artifacts: int
    second_messages: int
    lost: int
    faults: tuple[str, ...]


def tally(scenes: tuple[Scene, ...], folder: Path, *, blobs: Path) -> Tally:
    """Count what the platform and the receiver wrote down, and the bytes that are stored."""
    platform, erp = entries(folder / "platform.jsonl"), entries(folder / "erp.jsonl")
    kept = [entry for entry in erp if entry["verdict"] in {"new", "old"}]
    stored = [path for path in blobs.rglob("*") if _DIGEST.fullmatch(path.name)]
    lost = [*_lost(scenes, kept)]
    second_messages = _seconds((entry["file_id"], *_heard(entry)) for entry in kept)
    artifacts = _artifacts(kept)
    second_artifacts = _seconds(place for place, _ in artifacts)
    faults = [
        *lost,
        *(f"told twice: {' '.join(what)}" for what in second_messages),
        *(f"made twice: {' '.join(what)}" for what in second_artifacts),
        *_unexpected(scenes, kept),
        *_refused(erp),
        *_damaged(stored),
        *_missing(kept, stored),
    ]
    return Tally(
        files=len(scenes),
        versions=sum(len(scene.document.versions) for scene in scenes),
        deliveries=_deliveries(platform),
        downloads=sum(entry["kind"] == "download" for entry in platform),
        artifacts=len(artifacts),
        blobs=len(stored),
        sent=len(erp),
        received=sum(entry["verdict"] == "new" for entry in erp),
        duplicates=sum(entry["verdict"] == "repeat" for entry in erp),
        second_artifacts=len(second_artifacts),
        second_messages=len(second_messages),
        lost=len(lost),
        faults=tuple(faults),
    )


def _heard(entry: Entry) -> Heard:
    return (entry["type"], entry["version"] if entry["type"] in _FINISHED else "")


def _deliveries(platform: list[Entry]) -> dict[str, int]:
    statuses = Counter(entry["status"] for entry in platform if entry["kind"] == "delivery")
    return {
        _ANSWERS.get(status, f"answered with {status}"): count
        for status, count in sorted(statuses.items(), key=lambda pair: -pair[1])
    }


def _artifacts(kept: list[Entry]) -> set[tuple[tuple[str, str, str], str]]:
    """Each artifact as the receiver was told of it: file, version and name, and its id."""
    return {
        ((entry["file_id"], entry["version"], name), artifact)
        for entry in kept
        for name, artifact in zip(entry["artifacts"], entry["artifact_ids"], strict=True)
    }


def _seconds(things: Iterable[tuple[str, ...]]) -> list[tuple[str, ...]]:
    return sorted(thing for thing, count in Counter(things).items() if count > 1)


def _lost(scenes: tuple[Scene, ...], kept: list[Entry]) -> Iterable[str]:
    came = {(entry["file_id"], _heard(entry)) for entry in kept if entry["verdict"] == "new"}
    for scene in scenes:
        file_id = scene.document.file_id
        for heard in sorted(expected(scene).must):
            if (file_id, heard) not in came:
                yield f"lost: {file_id} {' '.join(heard)}"


def _unexpected(scenes: tuple[Scene, ...], kept: list[Entry]) -> Iterable[str]:
    known = {scene.document.file_id: expected(scene) for scene in scenes}
    for entry in kept:
        wanted = known.get(entry["file_id"])
        if wanted is None or _heard(entry) not in wanted.must | wanted.may:
            yield f"should never have been told: {entry['file_id']} {' '.join(_heard(entry))}"


def _refused(erp: list[Entry]) -> Iterable[str]:
    for entry in erp:
        if entry["verdict"] == "refused":
            yield f"refused by the receiver: {entry['message_id']}: {entry['reason']}"
    bodies: dict[str, str] = {}
    for entry in erp:
        if entry["verdict"] in {"new", "old", "repeat"}:
            first = bodies.setdefault(entry["message_id"], entry["body_sha256"])
            if first != entry["body_sha256"]:
                yield f"sent again with other bytes: {entry['message_id']}"


def _damaged(stored: list[Path]) -> Iterable[str]:
    for path in stored:
        if hashlib.sha256(path.read_bytes()).hexdigest() != path.name:
            yield f"stored bytes do not match their name: {path.name}"


def _missing(kept: list[Entry], stored: list[Path]) -> Iterable[str]:
    names = {path.name for path in stored}
    for entry in kept:
        for digest in entry["digests"]:
            if digest not in names:
                yield f"told but not stored: {entry['file_id']} {digest}"

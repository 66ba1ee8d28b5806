"""What came of a trial, counted outside, held against what a calm one came to."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace

from app.artifacts import open_blobs
from app.cli.demo.journal import Entry, entries
from app.cli.torture.trial import Trial
from app.replay import replay
from app.store.engine import Store, open_store
from app.store.reading import files, work
from app.store.reading.files import FileFilter
from app.store.reading.pages import Ask
from app.store.reading.work import Work, WorkFilter
from app.verify import verify_artifacts, verify_chain

_ALL = 1000
_KEPT = frozenset({"new", "old", "repeat", "failed"})
_FINISHED = frozenset({"file.version.completed", "file.version.failed"})
# A job that took three workers with it is dead, and waits for an operator: told as failed.
_GIVEN_UP = "worker died"

Key = tuple[str, str, str, str]  # destination, source, file, version


@dataclass(frozen=True, slots=True)
class Heard:
    """What a receiver was told of a version: how it ended, with which artifacts."""

    type: str
    artifacts: tuple[str, ...]
    error: str = ""


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a trial amounted to; the three lists say in words what should not be."""

    heard: Mapping[Key, Heard]
    lost: tuple[str, ...] = ()
    doubled: tuple[str, ...] = ()
    wrong: tuple[str, ...] = ()
    deliveries: int = 0
    messages: int = 0
    repeats: int = 0
    given_up: int = 0

    @property
    def is_good(self) -> bool:
        """Whether nothing was lost, doubled or otherwise wrong."""
        return not (self.lost or self.doubled or self.wrong)


@dataclass(slots=True)
class Seen:
    """What lies there after the last life: all that was told, and the store's own rows."""

    told: dict[str, list[Entry]] = field(default_factory=dict)
    answered: list[Entry] = field(default_factory=list)
    rows: dict[str, Work] = field(default_factory=dict)
    file_ids: dict[str, str] = field(default_factory=dict)
    unsound: list[str] = field(default_factory=list)


def judged(trial: Trial, calm: Mapping[Key, Heard]) -> Verdict:
    """Hold a finished trial against what a calm one told; against nothing if it is the calm one."""
    seen = _seen(trial)
    heard = _heard(seen)
    missing = [*_missing(trial, calm, heard, seen)]
    left = [fault for fault in trial.faults if fault.startswith("lost")]
    told = [entry for found in seen.told.values() for entry in found]
    return Verdict(
        heard=heard,
        lost=(*left, *missing),
        doubled=tuple(_doubled(seen)),
        wrong=(*(fault for fault in trial.faults if fault not in left), *_wrong(seen, trial)),
        deliveries=sum(entry["status"] > 0 for entry in seen.answered),
        messages=sum(entry["verdict"] == "new" for entry in told),
        repeats=sum(entry["verdict"] == "repeat" for entry in told),
        given_up=sum(_GIVEN_UP in each.error for each in heard.values()),
    )


def _seen(trial: Trial) -> Seen:
    seen = Seen()
    for place in trial.config.destinations:
        seen.told[place.name] = trial.outside.told(place.name)
    for source in trial.config.sources:
        seen.answered += entries(trial.folder / f"source-{source.name}.jsonl")
    if not (trial.folder / "store.db").exists():
        return replace(seen, unsound=["no store was made"])
    store = open_store(trial.config.installation.database_url)
    try:
        _look_inside(store, trial, seen)
    finally:
        store.close()
    return seen


def _look_inside(store: Store, trial: Trial, seen: Seen) -> None:
    with store.read() as connection:
        rows = work.some(connection, "message", WorkFilter(), limit=_ALL)
        seen.rows = {row.id: row for row in rows}
        page = files.listed(connection, FileFilter(), Ask(limit=_ALL))
        seen.file_ids = {found.id: found.file.file_id for found in page.items}
    outcome = replay(store)
    if not outcome.is_equal:
        seen.unsound.append(f"replay: {outcome.differing} rows differ from what the log makes")
    blobs = open_blobs(trial.config.installation.artifacts_url)
    for findings in (verify_chain(store), verify_artifacts(store, blobs)):
        seen.unsound += [f"verify: {fault.where} {fault.what}" for fault in findings.faults]
    scratch = trial.folder / "artifacts" / ".scratch"
    seen.unsound += [f"left lying: {path.name}" for path in scratch.glob("*")]


def _heard(seen: Seen) -> dict[Key, Heard]:
    found: dict[Key, Heard] = {}
    for destination, entry in _kept(seen):
        about = _about(entry, seen)
        if about and about[3] in _FINISHED:
            source, file_id, version, kind = about
            artifacts = tuple(sorted(entry["artifacts"]))
            found[destination, source, file_id, version] = Heard(kind, artifacts, entry["error"])
    return found


def _kept(seen: Seen) -> Iterator[tuple[str, Entry]]:
    """What a receiver kept: whatever came first under its id."""
    for destination, told in seen.told.items():
        for entry in told:
            if entry["verdict"] in {"new", "old"}:
                yield destination, entry


def _about(entry: Entry, seen: Seen) -> tuple[str, str, str, str] | None:
    """Source, file, version and type; of a body in a form of its own, as the store has it."""
    if entry["type"] and entry["file_id"]:
        return entry["source"], entry["file_id"], entry["version"], entry["type"]
    row = seen.rows.get(entry["message_id"])
    if row is None:
        return None
    return row.source, seen.file_ids.get(row.stream, ""), row.version, row.type


# -- what should not be ---------------------------------------------------------------------------


def _missing(
    trial: Trial, calm: Mapping[Key, Heard], heard: Mapping[Key, Heard], seen: Seen
) -> Iterator[str]:
    """The newest version of each file, where a calm run told it and this one did not."""
    held = {
        (row.name, row.source, seen.file_ids.get(row.stream, ""), row.version)
        for row in seen.rows.values()
        if row.state == "held"
    }
    for sample, version in trial.newest.values():
        for key, wanted in calm.items():
            if key[1:] != (sample.source, sample.file_id, str(version)) or key in held:
                continue
            found = heard.get(key)
            what = f"{sample.file_id} version {version} at {key[0]}"
            if found is None:
                yield f"lost: {what} was never told"
            elif _GIVEN_UP not in found.error and not _is_same(found, wanted):
                yield f"lost: {what} was told as {found.type} with {', '.join(found.artifacts)}"


def _is_same(found: Heard, wanted: Heard) -> bool:
    return (found.type, found.artifacts) == (wanted.type, wanted.artifacts)


def _doubled(seen: Seen) -> Iterator[str]:
    yield from _several("told under two ids", _ids(seen))
    yield from _several("sent with two bodies", _bodies(seen))
    yield from _several("made twice", _artifacts(seen))
    yield from _several("given two receipts", _receipts(seen))


def _several(words: str, found: Iterable[tuple[str, str]]) -> Iterator[str]:
    known: dict[str, set[str]] = {}
    for what, which in found:
        known.setdefault(what, set()).add(which)
    yield from (f"doubled: {what} was {words}" for what, which in known.items() if len(which) > 1)


def _ids(seen: Seen) -> Iterator[tuple[str, str]]:
    for destination, told in seen.told.items():
        for entry in told:
            about = _about(entry, seen) if entry["verdict"] in _KEPT else None
            if about and about[3] in _FINISHED:
                yield f"{' '.join(about)} at {destination}", entry["message_id"]


def _bodies(seen: Seen) -> Iterator[tuple[str, str]]:
    for told in seen.told.values():
        for entry in told:
            yield f"message {entry['message_id']}", entry["body_sha256"]


def _artifacts(seen: Seen) -> Iterator[tuple[str, str]]:
    for _, entry in _kept(seen):
        for name, made in zip(entry["artifacts"], entry["artifact_ids"], strict=True):
            about = f"{entry['source']} {entry['file_id']} version {entry['version']}"
            yield f"artifact {name} of {about}", made


def _receipts(seen: Seen) -> Iterator[tuple[str, str]]:
    for entry in seen.answered:
        if entry["receipt"]:
            yield f"event {entry['event_id']}", entry["receipt"]


def _wrong(seen: Seen, trial: Trial) -> Iterator[str]:
    yield from seen.unsound
    for destination, told in seen.told.items():
        for entry in told:
            if entry["verdict"] == "refused":
                yield f"refused by {destination}: {entry['reason']}"
    fine = {0, 200, 202, 503, *(s.ready.profile.answer.status for s in trial.config.sources)}
    for entry in seen.answered:
        if entry["status"] not in fine:
            yield f"event {entry['event_id']} was answered with {entry['status']}"

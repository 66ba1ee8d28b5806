"""The tables that are read: rows computed from a file's state, and nothing else.

Because a row is a function of the state, and the state a fold of the events, a rebuild gives the
same rows, column by column, as the live system has.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql, sqlite

from app.store import rows as row_by_row
from app.store import tables as t
from app.store.codec import decode_file, encode_file
from domain.commands import Cause
from domain.events import Artifact
from domain.installation import Paused, RecipeDefined
from domain.states import File, Job, Message, current_result
from domain.summary import file_state

Row = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Change:
    """A file's state before and after a batch."""

    stream: str
    before: File
    after: File


def file_row(stream: str, file: File) -> Row:
    """The row of the file itself, its versions inside."""
    seen = file.view
    newest = file.versions.get(seen.newest)
    return {
        "stream": stream,
        "source": file.source,
        "file_id": file.file_id,
        "name": seen.name,
        "folded_name": folded(seen.name),
        "project": file.project,
        "state": file_state(file),
        "current": seen.current,
        "result": current_result(file),
        "recipe": newest.recipe if newest else "",
        "revision": file.revision,
        "opened_ms": file.opened_ms,
        "changed_ms": file.changed_ms,
        "body": encode_file(file),
    }


def job_row(stream: str, file: File, job: Job) -> Row:
    """The row of one job."""
    return {
        "id": job.id,
        "stream": stream,
        "source": file.source,
        "version": job.version,
        "kind": job.kind,
        "name": job.name,
        "recipe": job.recipe,
        "state": job.phase,
        "ordered_ms": job.ordered_ms,
        "due_ms": job.due_ms,
        "ended_ms": job.ended_ms,
        "attempts": job.attempts,
        "losses": job.losses,
        "epoch": job.epoch,
        "run": job.run,
        "required": job.required,
        "asked": job.asked,
        "error": job.error,
    }


def message_row(stream: str, file: File, message: Message) -> Row:
    """The row of one message."""
    return {
        "id": message.id,
        "stream": stream,
        "source": file.source,
        "destination": message.destination,
        "type": message.type,
        "version": message.version,
        "sequence": message.sequence,
        "state": message.phase,
        "ordered_ms": message.ordered_ms,
        "due_ms": message.due_ms,
        "ended_ms": message.ended_ms,
        "attempts": message.attempts,
        "epoch": message.epoch,
        "run": message.run,
        "error": message.error,
        "reference": message.reference,
    }


def artifact_row(stream: str, artifact: Artifact) -> Row:
    """The row of one artifact."""
    return {
        "id": artifact.id,
        "stream": stream,
        "name": artifact.name,
        "sha256": artifact.sha256,
        "size_bytes": artifact.size_bytes,
        "media_type": artifact.media_type,
        "note": artifact.note,
    }


def control_row(event: Paused, cause: Cause) -> Row:
    """The row of a pause."""
    return {
        "what": event.what,
        "reason": event.reason or cause.reason,
        "operator": cause.operator,
        "since_ms": event.at_ms,
    }


def recipe_row(event: RecipeDefined) -> Row:
    """The row of a recipe that was pinned."""
    return {"digest": event.digest, "form": event.form.encode()}


def rows(stream: str, file: File) -> dict[sa.Table, list[Row]]:
    """Every projected row of the file: what a rebuild compares and writes."""
    return {
        t.files: [file_row(stream, file)],
        t.jobs: [job_row(stream, file, job) for job in file.jobs.values()],
        t.messages: [message_row(stream, file, m) for m in file.messages.values()],
        t.artifacts: [artifact_row(stream, a) for a in _artifacts(file)],
    }


def folded(name: str) -> str:
    """A name as search compares it: either Unicode form, any case."""
    return unicodedata.normalize("NFC", name).casefold()


def _artifacts(file: File) -> Iterable[Artifact]:
    return {a.id: a for made in file.made.values() for a in made}.values()


_REMOVE = t.artifacts.delete().where(t.artifacts.c.id == sa.bindparam("artifact"))
_LOAD = sa.select(t.files.c.stream, t.files.c.body).where(
    t.files.c.stream.in_(sa.bindparam("streams", expanding=True))
)


def load(connection: sa.Connection, streams: Iterable[str]) -> dict[str, File]:
    """The states of these files; a stream without events is a file of revision 0."""
    return ask(connection, streams)()


def ask(connection: sa.Connection, streams: Iterable[str]) -> row_by_row.Asked[dict[str, File]]:
    """``load`` in two halves."""
    wanted = list(streams)
    if not wanted:
        return dict
    answer = row_by_row.ask(connection, _LOAD, {"streams": wanted})

    def states() -> dict[str, File]:
        found = {stream: decode_file(body) for stream, body in answer()}
        return {stream: found.get(stream, File()) for stream in wanted}

    return states


def write(connection: sa.Connection, changes: Iterable[Change]) -> None:
    """Write the rows that differ, each table in one statement, sorted by key."""
    changed: dict[sa.Table, list[Row]] = {table: [] for table in t.PROJECTED_BY_STREAM}
    for change in changes:
        if change.after.made is not change.before.made:
            _remove(connection, change)
        for table, differing in _differing(change).items():
            changed[table].extend(differing)
    for table, found in changed.items():
        upsert(connection, table, found)


def _remove(connection: sa.Connection, change: Change) -> None:
    """Artifacts are the only rows that an event takes away."""
    kept = {artifact.id for artifact in _artifacts(change.after)}
    gone = {artifact.id for artifact in _artifacts(change.before)} - kept
    row_by_row.write(connection, _REMOVE, [{"artifact": each} for each in sorted(gone)])


def _differing(change: Change) -> dict[sa.Table, list[Row]]:
    stream, before, after = change.stream, change.before, change.after
    if after.erased and not before.erased:
        return rows(stream, after)
    jobs = _news(before.jobs, after.jobs)
    messages = _news(before.messages, after.messages)
    made = _news(before.made, after.made)
    return {
        t.files: [file_row(stream, after)],
        t.jobs: [job_row(stream, after, job) for job in jobs],
        t.messages: [message_row(stream, after, m) for m in messages],
        t.artifacts: [artifact_row(stream, a) for group in made for a in group],
    }


def _news(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[Any]:
    if before is after:
        return []
    return [value for key, value in after.items() if before.get(key) != value]


def upsert(connection: sa.Connection, table: sa.Table, found: list[Row]) -> None:
    """Insert the rows, or overwrite those with the same key; in one statement, sorted by key."""
    if not found:
        return
    key = next(iter(table.primary_key.columns)).name
    unique = {row[key]: row for row in found}
    statement = _upsert(table, connection.dialect.name)
    row_by_row.write(connection, statement, [unique[k] for k in sorted(unique)])


# Building one takes longer than writing a row with it.
@cache
def _upsert(table: sa.Table, dialect: str) -> sa.Insert:
    insert = sqlite.insert(table) if dialect == "sqlite" else postgresql.insert(table)
    keys = [column.name for column in table.primary_key.columns]
    news = {c.name: insert.excluded[c.name] for c in table.columns if c.name not in keys}
    return insert.on_conflict_do_update(index_elements=keys, set_=news)

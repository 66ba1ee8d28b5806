"""Artifacts by id, with what decides who may have them."""

from __future__ import annotations

from dataclasses import dataclass

import sqlalchemy as sa

from app.store import tables as t


@dataclass(frozen=True, slots=True)
class ArtifactRow:
    """A recorded result and the file that it belongs to."""

    id: str
    stream: str
    source: str
    file_name: str
    name: str
    sha256: str
    size_bytes: int
    media_type: str


def one(connection: sa.Connection, artifact: str) -> ArtifactRow | None:
    """One artifact by its id."""
    query = (
        sa.select(
            t.artifacts.c.id,
            t.artifacts.c.stream,
            t.files.c.source,
            t.files.c.name.label("file_name"),
            t.artifacts.c.name,
            t.artifacts.c.sha256,
            t.artifacts.c.size_bytes,
            t.artifacts.c.media_type,
        )
        .select_from(t.artifacts.join(t.files, t.files.c.stream == t.artifacts.c.stream))
        .where(t.artifacts.c.id == artifact)
    )
    row = connection.execute(query).first()
    return None if row is None else ArtifactRow(*row)

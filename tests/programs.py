"""A newer program than the present one, as far as the schema is concerned."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import migrations

# What the release after this one might do to tables that are full and in use.
STEP = '''
"""Three things more about every job and file."""

import sqlalchemy as sa
from alembic import op

from migrations import Index, add_indexes

revision = "9001"
down_revision = "{before}"
OLDEST = "{oldest}"
INDEXES = (Index("jobs_by_state", "jobs", "state, id"),)


def upgrade() -> None:
    op.add_column("jobs", sa.Column("weight", sa.BigInteger, nullable=False, server_default="1"))
    op.add_column("files", sa.Column("colour", sa.Text))
    op.create_table("colours", sa.Column("name", sa.Text, primary_key=True))
    add_indexes(INDEXES)
'''


@contextmanager
def newer(folder: Path, *, before: str, oldest: str) -> Iterator[None]:
    """Be the program of the next release, which says how far back its tables reach."""
    (present,) = map(Path, migrations.__path__)
    place = folder / f"migrations-{oldest}"
    if not place.exists():
        shutil.copytree(present, place, ignore=shutil.ignore_patterns("__pycache__"))
        step = STEP.format(before=before, oldest=oldest)
        (place / "versions" / "9001_next.py").write_text(step)
    migrations.__path__ = [str(place)]
    try:
        yield
    finally:
        migrations.__path__ = [str(present)]

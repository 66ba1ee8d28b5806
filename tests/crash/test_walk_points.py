"""A process killed while it walks a change feed: the next one finds all of it, once."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from jobs.walker import AT_ONCE
from tests import runtimes as r
from tests.crash.test_runtime_points import started
from tests.crash.zygotes import KILLED
from tests.integration.test_walks import SECRET, Dropbox, text
from tests.servers import closed_port, serving

POINTS = (
    "changes.request.before",
    "changes.request.after",
    "changes.found.before",
    "changes.found.stored",
    "changes.cursor.kept",
)


def rows(folder: Path, query: str) -> list[tuple[object, ...]]:
    with closing(sqlite3.connect(folder / "store.db")) as connection:
        return connection.execute(query).fetchall()


@pytest.mark.req("F9", "F11")
@pytest.mark.parametrize("point", POINTS)
def test_a_walk_killed_at_a_point_is_walked_again_and_skips_nothing(
    tmp_path: Path, point: str
) -> None:
    there = Dropbox()
    # More than are stored together, so that some are and the cursor is not.
    there.names = [f"{number}.pdf" for number in range(AT_ONCE + 10)]
    port = closed_port()
    with serving(there.handle) as source:
        written = text(source).replace('"127.0.0.1:0"', f'"127.0.0.1:{port}"')
        written = written.replace("[recipes.all]", '[recipes.all]\nname = "*.none"')
        (tmp_path / "laufzettel.toml").write_text(written)
        armed = {"LAUFZETTEL_SCRATCH": str(tmp_path), "LAUFZETTEL_POINT": point}
        with started(tmp_path, port, SECRET=SECRET, **armed) as process:
            assert process.wait() == KILLED, (tmp_path / "log").read_text()
        before = rows(tmp_path, "SELECT cursor FROM walks")
        with started(tmp_path, port, SECRET=SECRET) as process:
            r.until(lambda: rows(tmp_path, "SELECT cursor FROM walks WHERE walked_ms > 0"))
        assert process.code == 0
    assert before == [(str(len(there.names)) if point == "changes.cursor.kept" else "",)]
    found = rows(tmp_path, "SELECT event_id FROM receipts WHERE type = 'reconciliation'")
    assert len(found) == len(set(found)) == len(there.names)
    assert rows(tmp_path, "SELECT cursor FROM walks") == [(str(len(there.names)),)]
    assert len(rows(tmp_path, "SELECT stream FROM files")) == len(there.names)

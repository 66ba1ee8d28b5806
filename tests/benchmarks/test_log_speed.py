"""What the log costs, each as a ratio to the least that the same work could cost, in one run."""

from __future__ import annotations

import hashlib
import sqlite3
import time
from collections import deque
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import msgspec
import pytest

from app.replay.folding import fold_stream
from app.store import event_log, migrate
from app.store.engine import Store, open_store
from app.store.rebuilding import Raw, by_stream, next_span, read_events
from app.verify import verify_chain, verify_parts
from tests.histories import History

ACCEPTED = 3000
IN_FLIGHT = 1000
BATCH = 256


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    opened = open_store(f"sqlite:///{tmp_path}/laufzettel.db")
    migrate.upgrade(opened)
    yield opened
    opened.close()


def test_acceptance_through_the_ledger_against_bare_inserts(store: Store, tmp_path: Path) -> None:
    with History(store) as history:
        requests = [history.announcement(f"F-{n}", 1) for n in range(ACCEPTED)]
        began_s = time.perf_counter()
        waiting = deque()  # type: ignore[var-annotated]
        for request in requests:
            waiting.append(history.ledger.submit(request))
            if len(waiting) > IN_FLIGHT:
                waiting.popleft().result()
        for future in waiting:
            future.result()
        ours = ACCEPTED / (time.perf_counter() - began_s)
    bare = _bare_inserts(tmp_path / "bare.db")
    print(f"\nacceptance {ours:,.0f}/s, bare group commit {bare:,.0f}/s, ratio {ours / bare:.2f}")


def _bare_inserts(path: Path) -> float:
    """Five rows of the same size for each, committed as often."""
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("PRAGMA journal_mode=WAL")
        connection.execute("PRAGMA synchronous=FULL")
        for table in range(5):
            connection.execute(
                f"CREATE TABLE t{table} (id INTEGER PRIMARY KEY, key TEXT UNIQUE, x)"
            )
        began_s = time.perf_counter()
        for start in range(0, ACCEPTED, BATCH):
            numbers = range(start, min(start + BATCH, ACCEPTED))
            rows = [(n, hashlib.sha256(b"%d" % n).hexdigest(), b"x" * 600) for n in numbers]
            connection.execute("BEGIN IMMEDIATE")
            for table in range(5):
                connection.executemany(f"INSERT INTO t{table} VALUES (?, ?, ?)", rows)  # noqa: S608 - a number
            connection.execute("COMMIT")
        return ACCEPTED / (time.perf_counter() - began_s)


@pytest.fixture
def long(store: Store) -> Store:
    """A store with some thousand events of files that went their whole way."""
    with History(store, seed=1) as history:
        for number in range(100):
            history.report(f"F-{number}", 1)
        history.drain()
    return store


def test_replay_against_reading_json(long: Store) -> None:
    with long.read() as connection:
        events = read_events(connection, next_span(connection, "", streams=10**6))
    streams = list(by_stream(events).values())
    least = _best(lambda raw: msgspec.json.decode(raw.body), events)
    ours = _best(fold_stream, streams) * len(events) / len(streams)
    print(
        f"\ndecode and evolve {ours:,.0f} events/s, JSON alone {least:,.0f}/s, {ours / least:.2f}"
    )


def test_verification_against_hashing(long: Store) -> None:
    with long.read() as connection:
        bodies = [body or b"" for _, _, body, _ in event_log.raw_after(connection, 0, limit=10**6)]
    least = _best(lambda body: hashlib.sha256(body).digest(), bodies)
    for name, verify in (("chain", verify_chain), ("private parts", verify_parts)):
        began_s = time.perf_counter()
        checked = verify(long).checked
        ours = checked / (time.perf_counter() - began_s)
        print(f"\n{name} {ours:,.0f} events/s, SHA-256 alone {least:,.0f}/s, {ours / least:.2f}")


def _best(work: object, items: list[list[Raw]] | list[Raw] | list[bytes]) -> float:
    """Items a second, the best of three rounds."""
    spans = []
    for _ in range(3):
        began_s = time.perf_counter()
        for item in items:
            work(item)  # type: ignore[operator]
        spans.append(time.perf_counter() - began_s)
    return len(items) / min(spans)

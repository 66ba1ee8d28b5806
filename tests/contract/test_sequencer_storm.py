"""The sequencer in a storm: writers that share streams, hold, roll back; leaders that come and go.

Writers write as the Ledger does (``SharedWriter``), with nothing else to do: so a million events
take minutes. A follower reads along and may never see a gap, nor anything but the next position.
"""

from __future__ import annotations

import json
import os
import random
import sys
import threading
from collections import Counter
from collections.abc import Iterator

import pytest
import sqlalchemy as sa

from app.clock import SystemDice
from app.ledger.writers import SharedWriter
from app.store import event_log, sequencer
from app.store import tables as t
from app.store.codec import Stored
from app.store.engine import Store, open_store
from app.verify import verify_chain
from tests.stores import Postgres

SEED = int(os.environ.get("LAUFZETTEL_SEED", "20261130"))
STREAMS = 48
WRITERS = 4
HELD_S = 0.03


class Storm:
    """Threads that write, disturb, place and follow until so many events are committed."""

    def __init__(self, store: Store, wanted: int) -> None:
        self.store = store
        self.wanted = wanted
        self.seen: Counter[str] = Counter()
        self._counting = threading.Lock()
        self._written = threading.Event()
        self._placed = threading.Event()
        self._faults: list[BaseException] = []

    def rage(self) -> None:
        """Let it happen; raises what went wrong in a thread."""
        writers = [self._thread(self._write, number) for number in range(WRITERS)]
        others = [
            *(self._thread(self._disturb, number) for number in range(2)),
            *(self._thread(self._lead, number) for number in range(3)),
            self._thread(self._follow, 0),
        ]
        for thread in writers:
            thread.join()
        self._written.set()
        for thread in others:
            thread.join()
        if self._faults:
            raise self._faults[0]

    def _thread(self, work: object, number: int) -> threading.Thread:
        def guarded() -> None:
            try:
                work(random.Random(f"{SEED} {work} {number}"), number)  # type: ignore[operator]
            except BaseException as fault:
                self._faults.append(fault)
                self._written.set()
                self._placed.set()
                raise

        thread = threading.Thread(target=guarded)
        thread.start()
        return thread

    def _count(self, **more: int) -> None:
        with self._counting:
            self.seen.update(more)

    # -- those who write --------------------------------------------------------------------------

    def _write(self, dice: random.Random, _: int) -> None:
        writer = SharedWriter(SystemDice())
        while self.seen["events"] < self.wanted and not self._faults:
            streams = [f"s-{n}" for n in dice.sample(range(STREAMS), dice.randint(1, 6))]
            with self.store.writing.connect() as connection, connection.begin() as transaction:
                writer.begin(connection, streams)
                count = self._append(connection, writer, streams, dice.randint(1, 20))
                if dice.random() < 0.05:
                    self._written.wait(dice.uniform(0, HELD_S))
                if dice.random() < 0.05:
                    transaction.rollback()
                    self._count(rolled_back=1)
                else:
                    transaction.commit()
                    self._count(events=count, batches=1)

    def _append(
        self, connection: sa.Connection, writer: SharedWriter, streams: list[str], each: int
    ) -> int:
        stored = [
            event
            for stream in streams
            for event in events(stream, event_log.last_revision(connection, stream), each)
        ]
        numbered = list(zip(writer.numbers.take(connection, len(stored)), stored, strict=True))
        event_log.append(connection, numbered)
        writer.place(connection, [(number, event.body) for number, event in numbered])
        return len(stored)

    def _disturb(self, dice: random.Random, _: int) -> None:
        """Take a transaction's number and sit on it: the frontier stands still meanwhile."""
        while not self._written.wait(dice.uniform(0, HELD_S)):
            with self.store.writing.connect() as connection, connection.begin():
                connection.execute(sa.text("SELECT pg_current_xact_id()"))
                self._written.wait(dice.uniform(0, HELD_S))
                connection.rollback()

    # -- those who place and follow ---------------------------------------------------------------

    def _lead(self, dice: random.Random, number: int) -> None:
        """Lead if nobody does; die before the commit at times, resign at others."""
        while not self._placed.is_set():
            was_written = self._written.is_set()
            with self.store.writing.connect() as connection, connection.begin() as transaction:
                term = sequencer.lead(connection, f"leader-{number}")
                if term is not None and dice.random() < 0.1:
                    sequencer.resign(connection, term)
                    self._count(resigned=1)
                    term = None
                placed = self._place(connection, term, dice) if term else 0
                is_dead = placed > 0 and dice.random() < 0.05
                (transaction.rollback if is_dead else transaction.commit)()
            if is_dead:
                self._count(lost_commits=1)
            elif term and was_written and not placed and self._is_all_placed():
                self._placed.set()
            elif not placed:
                self._placed.wait(dice.uniform(0, HELD_S / 3))

    def _place(self, connection: sa.Connection, term: sequencer.Term, dice: random.Random) -> int:
        return sequencer.sequence(connection, term, limit=dice.choice((1, 50, 2000))) or 0

    def _is_all_placed(self) -> bool:
        with self.store.read() as connection:
            return sequencer.unsequenced(connection) == 0

    def _follow(self, dice: random.Random, _: int) -> None:
        last = 0
        while True:
            is_end = self._placed.is_set()
            with self.store.read() as connection:
                found = list(event_log.raw_after(connection, last, limit=5000))
            assert [row[0] for row in found] == list(range(last + 1, last + 1 + len(found)))
            last += len(found)
            self.seen["followed"] = last
            if not found:
                if is_end:
                    return
                self._placed.wait(dice.uniform(0, HELD_S))


def events(stream: str, last: int, count: int) -> Iterator[Stored]:
    """Events that the verification takes for such; nobody decodes the rest of them."""
    for revision in range(last + 1, last + 1 + count):
        envelope = {"revision": revision, "stream": stream, "type": "test.happened"}
        yield Stored(stream, revision, "test.happened", json.dumps(envelope).encode(), b"", b"")


@pytest.mark.req("B1", "B4")
@pytest.mark.timeout(3600)
def test_a_follower_sees_every_event_once_and_in_order_whatever_writers_and_leaders_do(
    postgres: Postgres, request: pytest.FixtureRequest
) -> None:
    wanted = 1_000_000 if request.config.getoption("--all-pairs") else 4_000
    url = postgres.fresh()
    store = open_store(url)
    try:
        storm = Storm(store, wanted)
        storm.rage()
        sys.stdout.write(f"seed {SEED}: {dict(storm.seen)}\n")
        with store.read() as connection:
            placed, written = (
                connection.execute(sa.select(sa.func.count()).select_from(table)).scalar_one()
                for table in (t.positions, t.events)
            )
        assert placed == written == storm.seen["events"] == storm.seen["followed"]
        assert written >= wanted
        assert verify_chain(store).faults == []
    finally:
        store.close()
        postgres.drop(url)

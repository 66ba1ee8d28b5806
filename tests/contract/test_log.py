"""The log: a total order that can be followed without missing what commits late."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
import sqlalchemy as sa

from app.ledger.requests import Accepted
from app.replay import replay
from app.store import event_log, sequencer
from app.store import tables as t
from app.store.codec import encode_event
from app.store.engine import Store
from app.store.errors import StoreUnavailableError
from app.verify import verify_chain, verify_parts
from domain import chain
from domain.commands import Cause
from domain.events import FileHeld
from tests.histories import History


def append(connection: sa.Connection, number: int, stream: str, revision: int = 1) -> None:
    """What a writer does of an event, up to its commit."""
    event = FileHeld(at_ms=number)
    stored = encode_event(event, stream=stream, revision=revision, cause=Cause("system"), salt=b"")
    event_log.append(connection, [(number, stored)])
    if connection.dialect.name == "postgresql":
        handed = "INSERT INTO unsequenced (event, xid) VALUES (%s, pg_current_xact_id())"
        connection.exec_driver_sql(handed, (number,))
    else:
        event_log.place(connection, event_log.head(connection), [(number, stored.body)])


def place(store: Store) -> int:
    """Let the sequencer place what is final; on SQLite the writer did."""
    if store.backend == "sqlite":
        return 0
    with store.writing.begin() as connection:
        term = sequencer.lead(connection, "test")
        assert term is not None
        return sequencer.sequence(connection, term, limit=1000) or 0


def positions(store: Store) -> list[tuple[int, int]]:
    with store.read() as connection:
        found = event_log.read_after(connection, 0, limit=1000)
    return [(p.position, p.recorded.event.at_ms) for p in found]


@pytest.mark.req("B1", "B4")
def test_events_get_positions_without_gaps_and_a_hash_of_all_before(store: Store) -> None:
    for number in (3, 5, 9):
        with store.writing.begin() as connection:
            append(connection, number, f"fil_{number}")
    place(store)

    assert positions(store) == [(1, 3), (2, 5), (3, 9)]
    with store.read() as connection:
        digest = chain.GENESIS
        for _, stored, body, _ in event_log.raw_after(connection, 0, limit=10):
            digest = chain.link(digest, body or b"")
            assert stored == digest
        assert event_log.head(connection) == event_log.Head(3, digest)


@pytest.mark.req("B1")
def test_a_follower_reads_on_from_where_it_was(store: Store) -> None:
    for number in range(1, 8):
        with store.writing.begin() as connection:
            append(connection, number, f"fil_{number % 2}", revision=(number + 1) // 2)
    place(store)
    with store.read() as connection:
        seen: list[int] = []
        while found := event_log.read_after(connection, len(seen), limit=3):
            seen += [p.position for p in found]
        odd = event_log.read_after(connection, 0, limit=9, stream="fil_1")
        assert event_log.read_after(connection, 0, limit=9, kind="FileReleased") == []
    assert seen == list(range(1, 8))
    assert [p.recorded.revision for p in odd] == [1, 2, 3, 4]


# -- cases ----------------------------------------------------------------------------------------


@pytest.mark.req("A10", "B1", "B3")
def test_f_03_twenty_writers_while_workers_run(store: Store) -> None:
    ended = threading.Event()
    with History(store) as history:

        def write(writer: int) -> list[Any]:
            return [history.report(f"W{writer}-{n}", 1)[0] for n in range(5)]

        def work() -> None:
            while not ended.is_set():
                history.work()
                history.deliver()

        worker = threading.Thread(target=work)
        worker.start()
        try:
            with ThreadPoolExecutor(20) as pool:
                answers = [answer for done in pool.map(write, range(20)) for answer in done]
        finally:
            ended.set()
            worker.join()
    place(store)

    assert len(answers) == 100
    assert {type(answer) for answer in answers} == {Accepted}
    assert verify_chain(store).is_sound
    assert verify_parts(store).is_sound
    assert replay(store).is_equal


@pytest.mark.req("B1")
@pytest.mark.parametrize("side", ["postgresql"], indirect=False)
def test_f_04_an_event_that_commits_late_is_neither_missed_nor_overtaken(store: Store) -> None:
    with store.writing.connect() as late, store.writing.connect() as rolled_back:
        opened = late.begin()
        append(late, 1, "fil_late")
        given_up = rolled_back.begin()
        append(rolled_back, 2, "fil_never")
        with store.writing.begin() as connection:
            append(connection, 3, "fil_early")

        assert place(store) == 0
        assert positions(store) == []
        given_up.rollback()
        assert place(store) == 0
        opened.commit()

    assert place(store) == 2
    assert positions(store) == [(1, 1), (2, 3)]
    assert place(store) == 0
    assert verify_chain(store).is_sound


@pytest.mark.req("A9")
@pytest.mark.parametrize("side", ["sqlite"], indirect=False)
def test_f_12_a_full_database_refuses_and_goes_on_once_there_is_room(store: Store) -> None:
    pages = {"most": 0}

    def limit(connection: Any, _: object) -> None:
        if pages["most"]:
            connection.execute(f"PRAGMA max_page_count = {pages['most']}")

    sa.event.listen(store.writing, "connect", limit)
    with History(store) as history:
        history.report("F-1", 1)
        history.drain()
        pragma = sa.text("PRAGMA page_count")
        pages["most"] = int(history.ledger.operate(lambda c, _: c.execute(pragma).scalar()) or 0)
        full = sa.text(f"PRAGMA max_page_count = {pages['most']}")
        history.ledger.operate(lambda connection, _: connection.execute(full))

        said = [_tried(history, number) for number in range(60)]
        refused = [words for words in said if words]
        assert len(refused) > 30
        assert {words for words in refused if "full" not in words} == set()

        pages["most"] = 0
        history.ledger._disconnect()
        assert isinstance(history.report("F-2", 1)[0], Accepted)
        history.drain()
    assert verify_chain(store).is_sound
    assert verify_parts(store).is_sound
    assert replay(store).is_equal
    with store.read() as connection:
        count = connection.execute(sa.select(sa.func.count(t.files.c.stream))).scalar()
    assert count == 62 - len(refused)


def _tried(history: History, number: int) -> str:
    """Report a file; why it could not be stored, "" if it was."""
    try:
        history.report(f"X-{number}", 1)
    except StoreUnavailableError as error:
        return str(error)
    return ""

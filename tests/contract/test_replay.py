"""Replay: what the log makes is what is there; what is not is named, and mended on request."""

from __future__ import annotations

from dataclasses import replace

import pytest
import sqlalchemy as sa

from app.ledger import Ledger
from app.replay import Difference, replay, state_at, state_at_time
from app.store import event_log
from app.store import tables as t
from app.store.codec import UPCASTERS, decode_file, encode_event, encode_file
from app.store.engine import Store
from app.store.rebuilding import read_events
from domain.commands import Cause
from domain.events import FileHeld
from domain.ids import derive
from domain.states import File
from tests.histories import KEY, History

F1 = derive(KEY, "fil", "s", "F-1")


@pytest.mark.req("B2", "F3")
@pytest.mark.parametrize("seed", range(8))
def test_rows_made_again_equal_the_live_rows(store: Store, seed: int) -> None:
    with History(store, seed) as history:
        history.run(100)
    outcome = replay(store)
    assert outcome.differences == []
    assert outcome.is_equal
    with store.read() as connection:
        count = connection.execute(sa.select(sa.func.count(t.events.c.id))).scalar()
    assert outcome.events == count


@pytest.mark.req("B2", "B9")
def test_rows_made_again_equal_the_live_rows_of_an_erased_file(store: Store) -> None:
    with History(store) as history:
        history.report("F-1", 1)
        history.drain()
        history.erase("F-1")
        history.drain()
        assert history.report("F-1", 2)
    assert replay(store).differences == []


def test_progress_rises_to_the_number_of_events(store: Store) -> None:
    with History(store) as history:
        history.run(20)
    seen: list[tuple[int, int]] = []
    outcome = replay(store, progress=lambda done, total: seen.append((done, total)))
    assert seen[-1] == (outcome.events, outcome.events)


@pytest.mark.req("F3")
def test_each_difference_is_named_and_private_values_are_not_told(store: Store) -> None:
    with History(store) as history:
        history.report("F-1", 1)
        history.drain()
        _spoil(store, history.ledger)
        found = replay(store)
        swapped = replay(store, swap=history.ledger.operate)

    assert not found.is_equal
    job, message, artifact, file = _names(store)
    assert set(found.differences) == {
        Difference("files", F1, "name", "differs", "differs"),
        Difference("files", F1, "revision", "99", str(file.revision)),
        Difference("jobs", job, "due_ms", "7", str(file.jobs[job].due_ms)),
        Difference("messages", message, "", "missing", "present"),
        Difference("artifacts", artifact, "name", "spoilt", "original"),
        Difference("artifacts", "art_extra", "", "present", "missing"),
        Difference("files", "fil_extra", "", "present", "missing"),
        Difference("controls", "all", "", "present", "missing"),
    }
    assert "geheim" not in repr(found)
    # F1, the file that is none, and the installation's own stream.
    assert swapped.swapped == 3
    assert replay(store).is_equal


def _spoil(store: Store, ledger: Ledger) -> None:
    job, message, artifact, _ = _names(store)
    changes: list[sa.Executable] = [
        t.files.update().where(t.files.c.stream == F1).values(name="geheim", revision=99),
        t.jobs.update().where(t.jobs.c.id == job).values(due_ms=7),
        t.messages.delete().where(t.messages.c.id == message),
        t.artifacts.update().where(t.artifacts.c.id == artifact).values(name="spoilt"),
        t.controls.insert().values(what="all", reason="geheim", operator="x", since_ms=1),
    ]
    ledger.operate(lambda connection, _: [connection.execute(change) for change in changes])
    ledger.operate(lambda connection, _: _add_rows(connection))


def _add_rows(connection: sa.Connection) -> None:
    for table, key, name in ((t.files, "stream", "fil_extra"), (t.artifacts, "id", "art_extra")):
        row = dict(connection.execute(sa.select(table)).mappings().first() or {})
        connection.execute(table.insert(), [{**row, "stream": F1, key: name}])


def _names(store: Store) -> tuple[str, str, str, File]:
    file = state_at_time(store, F1, 10**15)
    original = next(a for made in file.made.values() for a in made if a.name == "original")
    return min(file.jobs), min(file.messages), original.id, file


@pytest.mark.req("F3")
def test_a_swap_leaves_the_log_and_the_leases_alone(store: Store) -> None:
    with History(store) as history:
        history.report("F-1", 1)
        history.drain()
        before = _truth(store)
        spoil = t.jobs.update().values(attempts=7)
        history.ledger.operate(lambda connection, _: connection.execute(spoil))
        replay(store, swap=history.ledger.operate)
    assert _truth(store) == before


def _truth(store: Store) -> list[object]:
    tables = (t.events, t.positions, t.private_parts, t.bodies, t.receipts, t.leases)
    with store.read() as connection:
        return [connection.execute(sa.select(table)).all() for table in tables]


# -- case F-08 ------------------------------------------------------------------------------------


@pytest.mark.req("B7", "F3")
def test_f_08_old_unknown_and_broken_events_do_not_stop_a_rebuild(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Schema 0 stands for an older one: it said `since_ms` where there is `at_ms` now.
    monkeypatch.setitem(UPCASTERS, ("FileHeld", 0), lambda data: {"at_ms": data["since_ms"]})
    with History(store) as history:
        for name in ("F-1", "F-2", "F-3", "F-4"):
            history.report(name, 1)
        history.drain()
    files = {name: derive(KEY, "fil", "s", name) for name in ("F-1", "F-2", "F-3", "F-4")}
    _append(store, files["F-1"], b'"schema":0', b'"since_ms":5', held=True)
    _append(store, files["F-2"], b'"type":"FileBlessed"', b'"at_ms":5')
    _append(store, files["F-3"], b'"schema":99', b'"at_ms":5')
    _append(store, files["F-4"], b'"at_ms":true', b'"at_ms":true')
    before = _truth(store)

    outcome = replay(store)

    assert outcome.unknown == {"FileBlessed": 1, "FileHeld": 1}
    (aside,) = outcome.aside
    assert (aside.stream, aside.type) == (files["F-4"], "FileHeld")
    assert "at_ms" in aside.reason
    assert outcome.differences == []
    assert _truth(store) == before
    assert state_at_time(store, files["F-1"], 10**15).held


def _append(store: Store, stream: str, *changes: bytes, held: bool = False) -> None:
    """Append what another program would have written, with the row that it would have left."""
    with store.writing.begin() as connection:
        revision = event_log.last_revision(connection, stream) + 1
        stored = encode_event(
            FileHeld(at_ms=5), stream=stream, revision=revision, cause=Cause("system"), salt=b""
        )
        body = stored.body
        for change in changes:
            name = change.split(b":")[0]
            old = {b'"schema"': b'"schema":1', b'"type"': b'"type":"FileHeld"'}.get(
                name, b'"at_ms":5'
            )
            body = body.replace(old, change)
        kind = "FileBlessed" if b"FileBlessed" in body else stored.type
        number = (
            10**6 + revision + int(connection.execute(sa.func.max(t.events.c.id)).scalar() or 0)
        )
        event_log.append(connection, [(number, replace(stored, body=body, type=kind))])
        row = connection.execute(
            sa.select(t.files.c.body).where(t.files.c.stream == stream)
        ).scalar()
        file = replace(decode_file(row or b""), revision=revision, changed_ms=5, held=held)
        connection.execute(
            t.files.update()
            .where(t.files.c.stream == stream)
            .values(revision=revision, changed_ms=5, body=encode_file(file))
        )


# -- a file as it was -----------------------------------------------------------------------------


@pytest.mark.req("F3")
def test_a_file_is_shown_as_of_any_position_and_any_time(store: Store) -> None:
    if store.backend != "sqlite":
        pytest.skip("positions are given by the sequencer, which has tests of its own")
    with History(store) as history:
        history.report("F-1", 1)
        history.clock.advance(60)
        between_ms = int(history.clock.now().timestamp() * 1000)
        history.clock.advance(60)
        history.report("F-2", 1)
        history.report("F-1", 2)
    with store.read() as connection:
        revisions = len(read_events(connection, F1))

    assert state_at(store, F1, 0) == File()
    assert state_at(store, F1, 1).view.current == "1"
    assert state_at(store, F1, 2).view.current == "1"
    assert state_at(store, F1, 99).view.current == "2"
    assert state_at(store, F1, 99).revision == revisions
    assert state_at_time(store, F1, between_ms).view.current == "1"
    assert state_at_time(store, F1, 0) == File()
    assert state_at(store, "fil_nobody", 99) == File()

"""Verification: nothing can be changed, removed, inserted or moved without being named."""

from __future__ import annotations

import hashlib
import random
import re
from collections.abc import Callable
from pathlib import Path

import pytest
import sqlalchemy as sa

from app.artifacts import Blobs, open_blobs
from app.store import event_log, sequencer
from app.store import tables as t
from app.store.engine import Store, open_store
from app.verify import Findings, verify_artifacts, verify_chain, verify_parts
from domain.events import Artifact
from tests.histories import History

Tamper = Callable[[sa.Connection], object]


@pytest.fixture
def logged(store: Store) -> Store:
    """A store with a history of some hundred events, each in its place."""
    with History(store, seed=4) as history:
        history.run(120)
        history.report("F-9", 1)
        history.drain()
    if store.backend == "postgresql":
        place(store)
    return store


def place(store: Store) -> None:
    with store.writing.begin() as connection:
        term = sequencer.lead(connection, "test")
        assert term is not None
        while sequencer.sequence(connection, term, limit=1000):
            pass


def tamper(store: Store, *changes: str | sa.Executable | Tamper) -> None:
    """Change what the database refuses to change, as its administrator can."""
    with store.writing.begin() as connection:
        _open_guards(connection)
        for change in changes:
            if isinstance(change, str):
                connection.exec_driver_sql(change)
            elif isinstance(change, sa.Executable):
                connection.execute(change)
            else:
                change(connection)


def _open_guards(connection: sa.Connection) -> None:
    if connection.dialect.name == "postgresql":
        for table in t.APPEND_ONLY:
            connection.exec_driver_sql(f"ALTER TABLE {table.name} DISABLE TRIGGER ALL")
    else:
        names = connection.exec_driver_sql("SELECT name FROM sqlite_master WHERE type = 'trigger'")
        for name in names.scalars().all():
            connection.exec_driver_sql(f"DROP TRIGGER {name}")


def faults(findings: Findings) -> list[str]:
    return [f"{fault.where}: {fault.what}" for fault in findings.faults]


@pytest.mark.req("B4")
def test_a_log_as_it_was_written_is_sound(logged: Store) -> None:
    seen: list[tuple[int, int]] = []
    chain = verify_chain(logged, lambda done, total: seen.append((done, total)))
    parts = verify_parts(logged)

    assert faults(chain) == faults(parts) == []
    assert chain.is_sound
    assert parts.is_sound
    assert chain.checked == parts.checked > 100
    assert seen[-1] == (chain.checked, chain.checked)
    with logged.read() as connection:
        assert event_log.head(connection) == event_log.Head(chain.position, chain.head)


def test_an_empty_log_is_sound(store: Store) -> None:
    assert verify_chain(store).is_sound
    assert verify_parts(store).is_sound


@pytest.mark.req("B4")
def test_a_short_memory_finds_the_same(logged: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("app.verify.chain.AT_ONCE", 7)
    assert verify_chain(logged, most_streams=2).is_sound


CHANGES: dict[str, tuple[list[str], list[str]]] = {
    "a changed event": (
        ["UPDATE events SET body = (SELECT body FROM events WHERE id = {next}) WHERE id = {id}"],
        ["position 50: the event or its hash was changed", "position 50: stream, revision or"],
    ),
    "a changed hash": (
        ["UPDATE positions SET hash = {hash} WHERE position = 50"],
        ["position 50: the event or its hash", "position 51: the event or its hash"],
    ),
    "a changed column": (
        ["UPDATE events SET type = 'FileHeld' WHERE id = {id}"],
        ["position 50: stream, revision or type are not those"],
    ),
    "a moved revision": (
        ["UPDATE events SET revision = 9999 WHERE id = {id}"],
        ["position 50: stream, revision or type are not those"],
    ),
    "a removed event": (
        ["DELETE FROM events WHERE id = {id}"],
        ["position 50: event {id} was removed"],
    ),
    "a removed position": (
        ["DELETE FROM positions WHERE position = 50"],
        ["position 50: position 50 removed", "event {id}: has no position"],
    ),
    "removed positions": (
        ["DELETE FROM positions WHERE position IN (50, 51, 52)"],
        ["position 50: positions 50 to 52 removed", "event {id}: has no position"],
    ),
    "a removed event with its position": (
        ["DELETE FROM events WHERE id = {id}", "DELETE FROM positions WHERE position = 50"],
        ["position 50: position 50 removed"],
    ),
    "a removed beginning": (
        ["DELETE FROM positions WHERE position <= 3"],
        ["position 1: positions 1 to 3 removed"],
    ),
    "a swapped pair": (
        ["UPDATE positions SET event = -1 WHERE position = 50",
         "UPDATE positions SET event = {id} WHERE position = 51",
         "UPDATE positions SET event = {next} WHERE position = 50"],
        ["position 50: the event or its hash was changed, or it stands where another stood",
         "position 51: the event or its hash was changed, or it stands where another stood"],
    ),
    "an inserted event": (
        ["INSERT INTO events SELECT 10000000, 'fil_x', 1, type, body FROM events WHERE id = {id}"],
        ["event 10000000: has no position"],
    ),
}  # fmt: skip


@pytest.mark.req("B4")
@pytest.mark.parametrize("name", CHANGES)
def test_what_was_done_to_the_log_is_named_with_its_place(logged: Store, name: str) -> None:
    changes, expected = CHANGES[name]
    query = sa.select(t.positions.c.event).where(t.positions.c.position.in_((50, 51)))
    with logged.read() as connection:
        ids = connection.execute(query.order_by(t.positions.c.position)).scalars().all()
    other = "(SELECT hash FROM positions WHERE position = 10)"
    known = {"id": ids[0], "next": ids[1], "hash": other}
    tamper(logged, *(change.format(**known) for change in changes))

    found = faults(verify_chain(logged))

    for line in expected:
        assert any(f.startswith(line.format(**known)) for f in found), found
    near = re.compile(r"position (1|5[0-3]): |event \d+: |.* comes after revision ")
    assert [fault for fault in found if not near.match(fault)] == []


@pytest.mark.req("B4")
def test_the_same_event_put_in_again_is_named(logged: Store) -> None:
    """Also by someone who makes the hashes anew: the revisions tell."""
    with logged.read() as connection:
        head = event_log.head(connection)
        row = connection.execute(sa.select(t.events).order_by(t.events.c.id).limit(1)).one()

    def forge(connection: sa.Connection) -> None:
        forged = {**row._mapping, "id": 10**7, "revision": 10**6}
        connection.execute(t.events.insert(), [forged])
        event_log.place(connection, head, [(10**7, row.body)])

    tamper(logged, forge)
    found = faults(verify_chain(logged))
    assert any("stream, revision or type" in fault for fault in found)
    assert any(f"position {head.position + 1}: revision 1 of" in fault for fault in found)


@pytest.mark.req("B4")
@pytest.mark.parametrize("side", ["sqlite"], indirect=False)
@pytest.mark.parametrize("seed", range(6))
def test_a_single_changed_byte_of_the_file_is_named(
    logged: Store, store_url: str, seed: int
) -> None:
    with logged.read() as connection:
        places = list(event_log.raw_after(connection, 0, limit=10_000))
    logged.close()
    path = Path(store_url.removeprefix("sqlite:///"))
    content = bytearray(path.read_bytes())
    dice = random.Random(seed)
    position, digest, body, _ = dice.choice(places)
    what = dice.choice((digest, body or b""))
    # The log's own row: an index holds no body and no hash.
    assert content.count(what) == 1
    content[content.index(what) + dice.randrange(len(what))] ^= 1 << dice.randrange(7)
    path.write_bytes(content)

    reopened = open_store(store_url)
    found = verify_chain(reopened)
    reopened.close()
    assert f"position {position}" in {fault.where for fault in found.faults}
    assert found.count <= 3


# -- private parts and bodies ---------------------------------------------------------------------


@pytest.mark.req("B4", "B6")
def test_a_changed_private_part_is_named(logged: Store) -> None:
    changes: dict[int, sa.Executable] = {}
    with logged.read() as connection:
        rows = connection.execute(
            sa.select(t.positions.c.position, t.private_parts)
            .join(t.private_parts, t.private_parts.c.event == t.positions.c.event)
            .limit(3)
        ).all()
    own = t.private_parts.c.event
    one, two, three = rows
    changes[one.position] = t.private_parts.update().where(own == one.event).values(
        parts=one.parts.replace(b'"F-', b'"G-')
    )  # fmt: skip
    changes[two.position] = t.private_parts.update().where(own == two.event).values(salt=b"0" * 16)
    changes[three.position] = t.private_parts.delete().where(own == three.event)
    tamper(logged, *changes.values())

    found = verify_parts(logged)

    assert verify_chain(logged).is_sound
    assert {fault.where for fault in found.faults} == {f"position {p}" for p in changes}
    said = "\n".join(faults(found))
    assert f"position {one.position}: the private part `file_id` was changed" in said
    assert f"position {three.position}: the private part was removed without an erasure" in said
    assert "G-" not in said


@pytest.mark.req("B4", "B9")
def test_an_erasure_is_no_fault(store: Store) -> None:
    with History(store) as history:
        history.report("F-1", 1)
        history.drain()
        history.erase("F-1")
        history.drain()
    if store.backend == "postgresql":
        place(store)
    found = verify_parts(store)
    assert faults(found) == []
    assert found.erased > 5


@pytest.mark.req("B4", "E2")
def test_changed_and_removed_bytes_of_messages_are_named(logged: Store) -> None:
    with logged.read() as connection:
        kept = sa.select(t.bodies.c.message).where(t.bodies.c.data.is_not(None))
        first, second = connection.execute(kept.limit(2)).scalars().all()
    own = t.bodies.c.message
    tamper(
        logged,
        t.bodies.update().where(own == first).values(data=b"{}"),
        t.bodies.delete().where(own == second),
    )
    said = "\n".join(faults(verify_parts(logged)))
    assert f"the bytes of {first} were changed or removed" in said
    assert f"the bytes of {second} were changed or removed" in said


# -- artifacts ------------------------------------------------------------------------------------


@pytest.mark.req("D4")
def test_every_artifact_is_read_and_what_is_wrong_is_named(store: Store, tmp_path: Path) -> None:
    blobs = open_blobs(f"file:{tmp_path}/blobs")
    made = [_artifact(blobs, tmp_path, n) for n in range(6)]
    with store.writing.begin() as connection:
        for artifact in made:
            row = {
                "id": artifact.id, "stream": "fil_a", "name": artifact.name, "note": "",
                "sha256": artifact.sha256, "size_bytes": artifact.size_bytes, "media_type": "x/y",
            }  # fmt: skip
            connection.execute(t.artifacts.insert(), [row])
    seen: list[int] = []
    assert verify_artifacts(store, blobs, lambda done, _: seen.append(done)).is_sound
    assert seen == list(range(1, 7))

    changed, gone = (blobs.path_of(artifact.sha256) for artifact in made[:2])
    assert changed is not None
    assert gone is not None
    changed.chmod(0o600)
    changed.write_bytes(b"content X")
    gone.unlink()
    with store.writing.begin() as connection:
        resized = t.artifacts.update().where(t.artifacts.c.id == "art_2")
        connection.execute(resized.values(size_bytes=1))

    said = {fault.where: fault.what for fault in verify_artifacts(store, blobs).faults}
    assert said.keys() == {"artifact art_0", "artifact art_1", "artifact art_2"}
    assert said["artifact art_0"].endswith("are not those of its digest")
    assert said["artifact art_1"].endswith("is missing")
    assert said["artifact art_2"].endswith("has another size than recorded")


def _artifact(blobs: Blobs, folder: Path, number: int) -> Artifact:
    content = f"content {number}".encode()
    digest = hashlib.sha256(content).hexdigest()
    path = folder / f"new-{number}"
    path.write_bytes(content)
    blobs.put_file(path, digest)
    return Artifact(f"art_{number}", "original", digest, len(content), "x/y")

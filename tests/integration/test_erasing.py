"""Erasure end to end: what goes, what stays, who is told, and what proves it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from app.artifacts import ERASURES
from app.compose.keeping import Keeping
from app.replay import replay
from app.store import signing
from app.store import tables as t
from app.store.reading.erasures import read_note
from app.verify import verify_artifacts, verify_chain, verify_parts
from domain.outcomes import Unclear
from jobs.sweep import Sweep
from tests.installations import SOURCE, Installation, event, found, installed
from tests.workings import deliver, finish_message, process

WHY = {"reason": "asked for by letter of 3 May"}
NAME = "Krankenakte-Meier.pdf"


def erased(running: Installation, stream: str) -> dict[str, Any]:
    admin = running.token()
    answer = running.api("POST", f"/files/{stream}/erase", admin, json=WHY)
    assert answer.status_code == 200, answer.text
    return certificate(running, stream)


def certificate(running: Installation, stream: str) -> dict[str, Any]:
    answer = running.api("GET", f"/files/{stream}/certificate", running.token())
    assert answer.status_code == 200, answer.text
    document: dict[str, Any] = answer.json()
    assert signing.signer_of(document) == signing.public_key(running.ledger.book.key)
    return document


def kept(running: Installation) -> Keeping:
    return Keeping(running.config, running.store, running.ledger, running.blobs, running.clock)


def everything(running: Installation) -> str:
    """All that is in the database but the process's own tokens and their names."""
    with running.store.read() as connection:
        return " ".join(
            str(tuple(row))
            for table in t.metadata.sorted_tables
            for row in connection.execute(sa.select(table))
        )


@pytest.mark.req("B6", "B9")
def test_nothing_of_an_erased_file_is_left_but_receipts_order_and_chain(tmp_path: Path) -> None:
    with installed(tmp_path, SOURCE) as running:
        first = running.send(event(file_id="patient-4711", file_name=NAME)).json()
        stream = process(running, b"the diagnosis")
        deliver(running, "REF-9")
        assert NAME in everything(running)
        erased(running, stream)
        deliver(running, "gone")
        left = everything(running)
        for word in (NAME, "Krankenakte", "patient-4711", "REF-9", "letter"):
            assert (word in left) == (word == "letter"), word
        assert Sweep(kept(running).sweep_parts).run().blobs == 1
        assert list(running.blobs.list()) == []
        again = running.send(event(file_id="patient-4711", file_name=NAME))
        assert again.status_code == 200
        assert again.json()["receipt"] == first["receipt"]
        assert replay(running.store).differences == []
        assert verify_chain(running.store).faults == []
        assert verify_parts(running.store).faults == []
        assert verify_artifacts(running.store, running.blobs).faults == []


@pytest.mark.req("B9")
def test_bytes_that_another_file_has_too_stay(tmp_path: Path) -> None:
    with installed(tmp_path, SOURCE) as running:
        running.send(event(file_id="a", id="e-a"))
        running.send(event(file_id="b", id="e-b"))
        stream = process(running, b"the same bytes")
        erased(running, stream)
        assert Sweep(kept(running).sweep_parts).run().blobs == 0
        assert verify_artifacts(running.store, running.blobs).faults == []
        assert len(list(running.blobs.list())) == 1


@pytest.mark.req("B9")
def test_the_certificate_says_who_was_told_and_who_confirmed(tmp_path: Path) -> None:
    with installed(tmp_path, SOURCE) as running:
        running.send(event())
        stream = process(running)
        deliver(running)
        document = erased(running, stream)
        assert document["reason"] == WHY["reason"]
        assert document["log"]["position"] > 0
        (told,) = document["told"]
        assert (told["destination"], told["state"], told["confirmed_at"]) == (
            "erp",
            "pending",
            None,
        )
        deliver(running)
        (told,) = certificate(running, stream)["told"]
        assert told["state"] == "delivered"
        assert told["confirmed_at"]


@pytest.mark.req("B9")
def test_a_destination_that_never_had_the_file_is_not_told(tmp_path: Path) -> None:
    with installed(tmp_path, SOURCE) as running:
        running.send(event())
        stream = str(found(running, t.files)[0].stream)
        assert erased(running, stream)["told"] == []


@pytest.mark.req("B9")
def test_a_destination_that_may_have_the_file_is_told(tmp_path: Path) -> None:
    with installed(tmp_path, SOURCE) as running:
        running.send(event())
        stream = process(running)
        (message,) = found(running, t.messages)
        finish_message(running, message.id, Unclear("no answer"))
        assert [told["destination"] for told in erased(running, stream)["told"]] == ["erp"]


@pytest.mark.req("B9")
def test_word_of_an_erasure_is_left_outside_the_database(tmp_path: Path) -> None:
    with installed(tmp_path, SOURCE) as running:
        running.send(event(file_name=NAME))
        stream = process(running)
        erased(running, stream)
        ((name, data),) = running.blobs.notes.all(ERASURES)
        assert name == stream
        assert NAME.encode() not in data
        told = read_note(data)
        assert told is not None
        assert told[0] == stream
        (tmp_path / "artifacts" / "erasures" / stream).unlink()
        Sweep(kept(running).sweep_parts).run()
        assert [name for name, _ in running.blobs.notes.all(ERASURES)] == [stream]


@pytest.mark.req("B9")
def test_a_certificate_that_was_changed_is_not_signed(tmp_path: Path) -> None:
    with installed(tmp_path, SOURCE) as running:
        running.send(event())
        document = erased(running, process(running))
    assert signing.signer_of(document | {"erased_at": "2020-01-01T00:00:00Z"}) is None
    assert signing.signer_of(json.loads(json.dumps(document))) is not None

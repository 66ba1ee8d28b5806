"""The auditor's slip and the signed ends of the log."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
import typer
from typer.testing import CliRunner

from app.artifacts import CHECKPOINTS, open_blobs
from app.cli import auditing
from app.store import checkpoints, installation, migrate, signing
from app.store import tables as t
from app.store.engine import open_store
from app.store.installation import Identity
from app.verify import verify_checkpoints
from app.verify.slip import slip_faults
from tests.histories import KEY as HISTORY_KEY
from tests.histories import History
from tests.installations import Installation, event, installed
from tests.workings import deliver, process

KEY = bytes(32)


@pytest.fixture(scope="module")
def slip(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    with installed(tmp_path_factory.mktemp("slip")) as running:
        running.send(event(file_name="<b>Vertrag</b> </script>.pdf"))
        stream = process(running)
        deliver(running, "REF-9")
        return slip_of(running, stream)


def slip_of(running: Installation, stream: str) -> dict[str, Any]:
    answer = running.api("GET", f"/files/{stream}/slip", running.token("operator"))
    assert answer.status_code == 200, answer.text
    document: dict[str, Any] = answer.json()
    return document


def signed_anew(document: dict[str, Any]) -> dict[str, Any]:
    rest = {name: value for name, value in document.items() if name != "signature"}
    return signing.signed(KEY, rest)


@pytest.mark.req("B4", "B5")
def test_a_slip_tells_what_was_received_done_and_told(slip: dict[str, Any]) -> None:
    assert slip_faults(slip, key=slip["signature"]["public_key"]) == []
    (received,) = slip["received"]
    assert (received["verdict"], len(received["digest"])) == ("accepted", 64)
    assert {artifact["name"] for artifact in slip["artifacts"]} == {"original", "sum"}
    (message,) = slip["messages"]
    assert (message["state"], message["reference"]) == ("delivered", "REF-9")
    assert [attempt["outcome"] for attempt in message["attempts"]] == ["done"]
    told = [json.loads(event["body"])["type"] for event in slip["events"]]
    assert told[0] == "VersionReported"
    assert told[-1] == "MessageDelivered"


@pytest.mark.req("B4")
def test_whatever_is_changed_in_a_slip_is_found(slip: dict[str, Any]) -> None:
    for path in ("made_at", "messages", "artifacts", "received"):
        changed = copy.deepcopy(slip)
        changed[path] = "2020-01-01T00:00:00Z" if path == "made_at" else []
        assert "signature" in slip_faults(changed)[0], path


@pytest.mark.req("B4")
def test_a_slip_that_another_signs_is_found(slip: dict[str, Any]) -> None:
    forged = copy.deepcopy(slip)
    forged["events"][0]["private"]["name"] = "other.pdf"
    forged["events"][1]["body"] = forged["events"][1]["body"].replace('"run":1', '"run":2')
    del forged["events"][2]
    faults = " | ".join(slip_faults(signed_anew(forged), key=slip["signature"]["public_key"]))
    assert "another installation" in faults
    assert "revision 1: the value of name" in faults
    assert "revision 3 is missing" in faults


@pytest.mark.req("F5")
def test_a_page_holds_its_document_and_shows_hostile_names_as_text(
    slip: dict[str, Any], tmp_path: Path
) -> None:
    text = auditing.page(slip)
    assert "<b>Vertrag" not in text.split(auditing._BEGIN, 1)[0]
    (tmp_path / "slip.html").write_text(text)
    (tmp_path / "slip.json").write_text(json.dumps(slip))
    (tmp_path / "bad.json").write_text(json.dumps(slip | {"made_at": "x"}))
    root = typer.Typer()
    root.add_typer(auditing.app, name="slip")
    for name, status in (("slip.html", 0), ("slip.json", 0), ("bad.json", 1), ("none", 2)):
        done = CliRunner().invoke(root, ["slip", "verify", str(tmp_path / name)])
        assert done.exit_code == status, done.output


@pytest.mark.req("B4")
def test_a_log_that_was_cut_does_not_agree_with_its_signed_end(tmp_path: Path) -> None:
    store = open_store(f"sqlite:///{tmp_path}/s.db")
    migrate.upgrade(store)
    with store.writing.begin() as connection:
        installation.create(connection, Identity("inst", HISTORY_KEY, 1), 1)
    with History(store) as history:
        history.report("F-1", 1)
        history.drain()
    blobs = open_blobs(f"file:{tmp_path}/artifacts")
    with store.read() as connection:
        stands = checkpoints.standing(connection)
    assert stands is not None
    blobs.notes.put(CHECKPOINTS, *checkpoints.note(stands, 1))
    assert verify_checkpoints(store, blobs).is_sound
    with store.writing.begin() as connection:
        connection.execute(sa.text("DROP TRIGGER positions_no_delete"))
        last = stands.head.position
        connection.execute(t.positions.delete().where(t.positions.c.position == last))
    (fault,) = verify_checkpoints(store, blobs).faults
    assert "the log ends before position" in fault.what
    store.close()

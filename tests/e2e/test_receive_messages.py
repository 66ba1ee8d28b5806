"""The receiver of the manual, run as it stands there, told by a real installation."""

from __future__ import annotations

import os
import re
import socket
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path

import httpx
import pytest

from app.compose import Process
from app.ledger.requests import Order
from app.store import tables as t
from domain.commands import Cause, ResolveMessage
from tests import runtimes as r
from tests.crash.zygotes import ROOT
from tests.servers import answering, closed_port, serving

PAGE = ROOT / "docs/how-to/receive-messages.md"
BOSS = Cause("operator", operator="ada", reason="test")


def listing(name: str) -> str:
    """The code of the manual under this name."""
    pattern = rf"<!-- {re.escape(name)} -->\n```\w+\n(.*?)```"
    found = re.search(pattern, PAGE.read_text(), re.DOTALL)
    assert found, name
    return found[1]


@contextmanager
def receiver(folder: Path, port: int) -> Iterator[Path]:
    """The manual's receiver, listening; gives its database."""
    database = folder / "inbox.db"
    with closing(sqlite3.connect(database)) as connection:
        connection.executescript(listing("inbox.sql"))
    (folder / "receiver.py").write_text(listing("receiver.py"))
    environ = {
        **os.environ,
        "LAUFZETTEL_SECRET": r.SECRET,
        "INBOX_DATABASE": str(database),
        "PORT": str(port),
    }
    process = subprocess.Popen([sys.executable, str(folder / "receiver.py")], env=environ)
    try:
        r.until(lambda: listens(port))
        yield database
    finally:
        process.terminate()
        process.wait(10)


def listens(port: int) -> bool:
    with suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
        return True
    return False


def deliveries(process: Process) -> int:
    """How often a message was taken, repeats included."""
    found = r.rows(process.base.store, t.attempts)
    return sum(a.scope == "destination:erp" and a.outcome == "done" for a in found)


@pytest.mark.req("E2", "E3", "E7")
def test_the_manuals_receiver_has_each_effect_once_whatever_is_sent_again(tmp_path: Path) -> None:
    port = closed_port()
    with receiver(tmp_path, port) as database, serving(answering(200, r.PDF)) as source:
        config = r.configured(
            tmp_path,
            source=source.host,
            destination=f"http://127.0.0.1:{port}/",
            recipe="transforms = []",
        )
        with r.running(config) as process:
            for number in (1, 2):
                r.announce(process, source.url("/f"), number=number)
                r.until(lambda: len(r.messages_in(process, "delivered")) == number)  # noqa: B023
            r.announce(process, source.url("/f"), file_id="F-2")
            r.until(lambda: len(r.messages_in(process, "delivered")) == 3)
            for row in r.rows(process.base.store, t.messages):
                again = ResolveMessage(
                    stream=row.stream, cause=BOSS, message=row.id, outcome="resend", force=True
                )
                process.base.ledger.submit(Order(again)).result()
            r.until(lambda: deliveries(process) == 6)
            sent = {m.id: m.sequence for m in r.rows(process.base.store, t.messages)}
        forged = {"webhook-id": "msg_x", "webhook-timestamp": "1", "webhook-signature": "v1,AAAA"}
        assert httpx.post(f"http://127.0.0.1:{port}/", headers=forged, json={}).status_code == 401
        with closing(sqlite3.connect(database)) as connection:
            known = {row[0] for row in connection.execute("SELECT webhook_id FROM inbox")}
            last = dict(connection.execute("SELECT file_id, sequence FROM inbox_files"))
    assert known == set(sent)
    assert last["F-1"] == sorted(sent.values())[1]
    assert set(last) == {"F-1", "F-2"}


def test_the_manuals_typescript_verifies_before_it_reads_and_takes_in_one_transaction() -> None:
    code = listing("receiver.ts")
    order = ["webhook.verify(", "take(headers", "sendStatus(204)"]
    places = [code.index(part) for part in order]
    assert places == sorted(places)
    assert code.index('"BEGIN"') < code.index("taken(client") < code.index('"COMMIT"')

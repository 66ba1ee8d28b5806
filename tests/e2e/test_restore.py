"""A restore from an old backup, then the sources' repeats: no second effect, and none lost."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from app.compose import copies
from app.compose.copies import Mark
from app.ledger.requests import Control
from app.replay import replay
from app.store import migrate
from app.store.engine import open_store
from app.verify import verify_chain
from domain.commands import Cause
from domain.installation import Paused, Resumed
from tests import runtimes as r
from tests.servers import Peer, Received, answering, serving

BOSS = Cause("operator", operator="ada", reason="test")
ERP = "destination:erp"
FILES = [f"F-{number}" for number in range(4)]


@dataclass
class Receiver:
    """Follows the rules: an id once, and nothing that is not above the file's last sequence."""

    ids: set[str] = field(default_factory=set)
    last: dict[str, int] = field(default_factory=dict)
    effects: list[tuple[str, str]] = field(default_factory=list)
    requests: int = 0

    def __call__(self, request: Received, peer: Peer) -> None:
        data = json.loads(request.body)["data"]
        self.requests += 1
        is_new = request.header("webhook-id") not in self.ids
        if is_new and data["sequence"] > self.last.get(data["file_id"], 0):
            self.effects.append((data["file_id"], data["version"]))
            self.last[data["file_id"]] = data["sequence"]
        self.ids.add(request.header("webhook-id"))
        peer.respond(204)


def submit(process: Any, event: Paused | Resumed) -> None:
    process.base.ledger.submit(Control(event, BOSS)).result(10)


def repeat(process: Any, url: str, file_id: str, number: int) -> None:
    """The source tells it, once more or for the first time."""
    accept = r.version_accepted(process.base.ledger, url, file_id=file_id, number=number)
    r.submit(process.base.ledger, accept)


@pytest.mark.req("E2", "F9")
@pytest.mark.usefixtures("either_database")
def test_e_14_a_restore_from_before_the_deliveries_has_no_second_effect(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    receiver = Receiver()
    with serving(answering(200, r.PDF)) as source, serving(receiver) as erp:
        url = source.url("/f")
        config = r.configured(tmp_path, source=source.host, destination=erp.url("/"))
        with r.running(config) as process:
            submit(process, Paused(at_ms=1, what=ERP, reason="a test"))
            for file_id in FILES:
                repeat(process, url, file_id, 1)
            r.until(lambda: len(r.messages_in(process, "pending")) == len(FILES))
            file = tmp_path / "old.tar"
            copies.backup(process.base.store, file, now_ms=1)
            submit(process, Resumed(at_ms=1, what=ERP))
            r.until(lambda: len(r.messages_in(process, "delivered")) == len(FILES))
            repeat(process, url, "F-0", 2)
            r.until(lambda: len(r.messages_in(process, "delivered")) == len(FILES) + 1)
            blobs_before = {blob.sha256 for blob in process.base.blobs.list()}
        told, ids = list(receiver.effects), set(receiver.ids)
        assert len(told) == len(FILES) + 1

        monkeypatch.setattr(r, "DATABASE", "sqlite:///restored.db")
        config = r.configured(tmp_path, source=source.host, destination=erp.url("/"))
        store = open_store(config.installation.database_url)
        migrate.upgrade(store)
        copies.restore(store, process.base.blobs, file, mark=Mark(2, bytes(16)))
        copies.end(store)
        store.close()
        with r.running(config) as process:
            submit(process, Resumed(at_ms=1, what=ERP))
            for number, file_id in [(1, name) for name in reversed(FILES)] + [(2, "F-0")]:
                repeat(process, url, file_id, number)
            r.until(lambda: all(r.settled(process, name) for name in FILES))
            r.until(lambda: r.file_of(process, "F-0").versions["2"].phase == "completed")
            assert receiver.effects == told
            assert receiver.ids == ids
            # The first message of F-0 may have been called back by then, as it was overtaken.
            assert 2 * len(told) - 1 <= receiver.requests <= 2 * len(told)
            assert {blob.sha256 for blob in process.base.blobs.list()} == blobs_before

            repeat(process, url, "F-1", 2)
            r.until(lambda: ("F-1", "2") in receiver.effects)
            assert receiver.effects == [*told, ("F-1", "2")]
            r.until(lambda: r.settled(process, "F-1"))
            assert process.base.ledger.book.incarnation == 2
            assert replay(process.base.store).differences == []
            assert verify_chain(process.base.store).faults == []

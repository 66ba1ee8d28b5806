"""One process from an accepted fact to the receiver, over real HTTP in both directions."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest
from standardwebhooks import Webhook

from app.store import tables as t
from tests import runtimes as r
from tests.servers import answering, serving


@pytest.mark.req("D1")
@pytest.mark.req("E1")
@pytest.mark.req("F1")
def test_a_file_goes_through_download_and_step_to_one_message(tmp_path: Path) -> None:
    with serving(answering(200, r.PDF)) as source, serving(answering(204)) as erp:
        config = r.configured(tmp_path, source=source.host, destination=erp.url("/hooks"))
        with r.running(config) as process:
            r.submit(process.base.ledger, r.version_accepted(process.base.ledger, source.url("/f")))
            r.until(
                lambda: (
                    all(m.phase == "delivered" for m in r.file_of(process).messages.values())
                    and r.file_of(process).messages
                )
            )
            file = r.file_of(process)
            attempts = r.rows(process.base.store, t.attempts)
            assert r.leases_left(process) == 0
    (message,) = r.told(erp)
    assert message["type"] == "file.version.completed"
    original, text = message["data"]["artifacts"]
    assert original["sha256"] == hashlib.sha256(r.PDF).hexdigest()
    assert text["name"] == "text"
    assert file.versions["1"].phase == "completed"
    assert [a.outcome for a in attempts] == ["done", "done", "done"]
    Webhook(r.SECRET).verify(erp.requests[0].body, dict(erp.requests[0].headers))

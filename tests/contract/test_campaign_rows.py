"""A campaign of a running process, on each database: every message once more, then over."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from app.store import tables as t
from domain.campaigns import Pace
from tests import runtimes as r
from tests.integration.test_campaigns import begin, tally
from tests.servers import answering, serving

COUNT = 15


@pytest.mark.req("F2", "E2")
@pytest.mark.usefixtures("either_database")
def test_a_running_process_sends_each_message_of_a_campaign_once_more(tmp_path: Path) -> None:
    with (
        serving(answering(200, r.PDF)) as source,
        serving(answering(204)) as receiver,
    ):
        config = r.configured(
            tmp_path, source=source.host, destination=receiver.url(), recipe="transforms = []"
        )
        with r.running(config) as process:
            for n in range(COUNT):
                r.announce(process, source.url(f"/{n}"), file_id=f"F-{n}")
            r.until(lambda: len(r.messages_in(process, "delivered")) == COUNT, within_s=60)
            begin(process.base, Pace(rate_per_s=1000))
            r.until(
                lambda: (
                    {row.state for row in r.rows(process.base.store, t.campaigns)} == {"finished"}
                ),
                within_s=60,
            )
            end = tally(process.base)
            sent = Counter(request.header("webhook-id") for request in receiver.requests)
            ended = [row for row in r.rows(process.base.store, t.attempts) if row.ended_ms]
    assert (end.total, end.arrived) == (COUNT, COUNT)
    assert len(sent) == COUNT
    assert set(sent.values()) == {2}
    assert len(ended) == 3 * COUNT, "a download, a message and its repeat for each"

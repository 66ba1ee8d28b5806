"""Many messages sent again at the console."""

from __future__ import annotations

from pathlib import Path

import pytest

from app.store import tables as t
from tests.installations import event, found, installed
from tests.visitors import Visitor
from tests.workings import deliver, process

WHY = "the receiver asked for it"


@pytest.mark.req("F2")
def test_many_messages_are_sent_again_first_dry_and_the_order_is_paused_and_given_up(
    tmp_path: Path,
) -> None:
    with installed(tmp_path) as running, Visitor(running) as visitor:
        running.send(event())
        process(running)
        deliver(running)
        preview = visitor.send(visitor.see("/messages"), "campaign").text
        assert "1 messages match; 1 would be sent again." in preview
        assert found(running, t.campaigns) == []
        assert visitor.send(preview, "campaign", reason="").status_code == 422
        assert visitor.send(preview, "campaign", reason=WHY, rate="fast").status_code == 422
        assert visitor.send(preview, "campaign", reason=WHY, canary="yes").status_code == 303
        shown = visitor.see("/campaigns")
        assert WHY in shown
        assert "a worker: none runs" in shown
        assert visitor.press("/campaigns", "campaign-pause", reason=WHY).status_code == 303
        assert visitor.press("/campaigns", "campaign-resume", reason=WHY).status_code == 303
        assert visitor.press("/campaigns", "campaign-stop", reason=WHY).status_code == 303
        assert found(running, t.campaigns)[0].state == "stopped"

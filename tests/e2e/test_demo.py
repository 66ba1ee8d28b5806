from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from app.cli.demo.journal import entries


@pytest.mark.req("A8")
@pytest.mark.req("C4")
@pytest.mark.req("D4")
@pytest.mark.req("E2")
@pytest.mark.timeout(240)
def test_the_demo_survives_its_crash_and_every_message_is_as_it_should_be(tmp_path: Path) -> None:
    ended = subprocess.run(
        [sys.executable, "-m", "app.cli", "demo", "--json", "--folder", str(tmp_path)],
        capture_output=True,
        text=True,
        check=False,
        timeout=200,
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr
    found = json.loads(ended.stdout)
    assert found["files"] >= 40
    assert found["faults"] == []
    assert (found["second_artifacts"], found["second_messages"], found["lost"]) == (0, 0, 0)
    assert {"accepted", "duplicate", "conflict", "forged"} <= set(found["deliveries"])
    # Two answers were dropped, so the same messages came again.
    assert found["duplicates"] >= 2
    starts = [e for e in entries(tmp_path / "laufzettel.log") if e["event"] == "process.started"]
    assert len(starts) == 2

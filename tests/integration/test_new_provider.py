"""The documented example of a provider that is added by data alone, over real HTTP."""

from __future__ import annotations

import hashlib
import hmac
import json
import re
from pathlib import Path
from typing import Any

import pytest

from app.config import Config, load
from app.store import tables as t
from tests.installations import NOW, SECRET, Installation, found, installed

PAGE = Path(__file__).parents[2] / "docs/how-to/add-a-provider.md"
ENVIRON = {"ARCHIVE_SECRET": "the-secret-of-the-archive-system", "ARCHIVE_TOKEN": "x"}


def example() -> str:
    (text,) = re.findall(r"```toml\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    return str(text)


def call(running: Installation, attempt: int = 1, *, off_s: int = 0, **record: Any) -> Any:
    told = {"key": "R-1", "revision": 1, "title": "a.pdf", "bytes": 3}
    told |= {"changed": "2026-11-30T10:15:00Z"} | record
    top = {"callId": "c-1", "what": "record.stored", "attempt": attempt, "record": told}
    body = json.dumps(top).encode()
    stamp = str(int(NOW.timestamp()) + off_s)
    over = stamp.encode() + b"." + body
    made = hmac.new(SECRET.encode(), over, hashlib.sha256).hexdigest()
    headers = {"x-archive-signature": f"t={stamp},v1={made}"}
    return running.http.post("/hooks/archive", content=body, headers=headers)


def test_the_example_is_shorter_than_forty_lines_and_can_be_used(tmp_path: Path) -> None:
    assert len(example().splitlines()) < 40
    (tmp_path / "laufzettel.toml").write_text(example())
    assert isinstance(load(tmp_path / "laufzettel.toml", ENVIRON), Config)


@pytest.mark.req("A3")
@pytest.mark.req("A8")
def test_a_provider_that_was_added_by_data_is_verified_read_and_answered(tmp_path: Path) -> None:
    text = example().replace("ARCHIVE_SECRET", "S_SECRET").replace("ARCHIVE_TOKEN", "ERP_SECRET")
    with installed(tmp_path, text) as running:
        first = call(running)
        assert (first.status_code, first.json()["event_id"]) == (202, "c-1")
        again = call(running, attempt=2)
        assert (again.status_code, again.json()["receipt"]) == (200, first.json()["receipt"])
        assert call(running, title="b.pdf").status_code == 409
        assert call(running, off_s=-301).status_code == 401
        (file,) = found(running, t.files)
        assert (file.file_id, file.name, file.current) == ("R-1", "a.pdf", "1")

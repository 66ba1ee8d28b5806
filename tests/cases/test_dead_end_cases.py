"""Cases of what can never succeed, in a whole process: each test is named after its case."""

from __future__ import annotations

from pathlib import Path

import pytest

from app.store import tables as t
from tests import runtimes as r
from tests.certificates import Authority
from tests.servers import answering, serving

FILES = Path(__file__).parent / "files"
TWO_STEPS = """transforms = [
  { name = "text", use = "text" },
  { name = "preview", use = "preview" },
]"""

pytestmark = pytest.mark.usefixtures("either_database")
TRUNCATED = "damaged: it is truncated, its end is missing"


@pytest.mark.req("D6")
def test_d_02_a_cut_pdf_is_dead_at_once_and_leaves_no_partial_text(tmp_path: Path) -> None:
    cut = (FILES / "pdf-truncated.pdf").read_bytes()
    types = 'types = ["file.version.completed", "file.version.failed"]'
    with serving(answering(200, cut)) as source, serving(answering(204)) as erp:
        config = r.configured(
            tmp_path, source=source.host, destination=erp.url("/"), recipe=TWO_STEPS, erp=types
        )
        with r.running(config) as process:
            r.announce(process, source.url("/f"))
            file = r.until(lambda: r.settled(process))
            artifacts = r.rows(process.base.store, t.artifacts)
    ended = {job.name: (job.phase, job.error, job.attempts) for job in file.jobs.values()}
    assert ended.pop("download") == ("done", "", 1)
    assert ended == dict.fromkeys(("text", "preview"), ("dead", TRUNCATED, 1))
    assert [artifact.name for artifact in artifacts] == ["original"]
    (message,) = r.told(erp)
    assert message["type"] == "file.version.failed"
    assert message["data"]["error"]["reason"] == TRUNCATED
    assert file.versions["1"].phase == "failed"


@pytest.mark.req("E11")
@pytest.mark.parametrize("kind", ["expired", "self-signed", "wrong name"])
def test_e_13_for_a_bad_certificate_a_message_waits_then_is_dead_and_nothing_is_sent(
    tmp_path: Path, kind: str
) -> None:
    authority = Authority(tmp_path)
    pem = {
        "expired": authority.issue("127.0.0.1", days=-1),
        "self-signed": authority.issue("127.0.0.1", self_signed=True),
        "wrong name": authority.issue("other.example"),
    }[kind]
    tls = authority.server_side(pem)
    with serving(answering(200, r.PDF)) as source, serving(answering(204), tls=tls) as erp:
        config = r.configured(
            tmp_path,
            source=source.host,
            destination=erp.url("/").replace("http:", "https:"),
            recipe="transforms = []",
            erp=f'ca = "{authority.ca_file}"\nretry = {{ base = "10ms", attempts = 3 }}',
        )
        with r.running(config) as process:
            r.announce(process, source.url("/f"))
            file = r.until(lambda: r.settled(process))
            tried = r.rows(process.base.store, t.attempts)
    (message,) = file.messages.values()
    outcomes = [a.outcome for a in tried if a.work == message.id]
    assert (message.phase, outcomes) == ("dead", ["again"] * 3)
    assert message.error.startswith("certificate")
    assert erp.requests == []

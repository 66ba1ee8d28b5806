from __future__ import annotations

import hashlib
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from app.config import Bearer, Secret
from domain.outcomes import Again, Dead, Done
from domain.recipes import Step
from jobs.outbound import credentials_of
from jobs.sandbox import Sandbox
from jobs.steps import NotApplicable, parse_parameters, pinned
from jobs.tools import Target, Tools
from jobs.transform import Made, StepJob, TransformOutcome, transform
from tests import runtimes as r
from tests.effects import tools_in
from tests.servers import Handler, Peer, Received, Server, answering, in_turn, serving

pytestmark = pytest.mark.req("D5")
BODY = bytes(range(256)) * 1024
AUTH, TOKEN = "bearer env:OCR_TOKEN", "t0ken-value"


@pytest.fixture
def tools(tmp_path: Path) -> Iterator[Tools]:
    with tools_in(tmp_path) as made:
        yield made


@pytest.fixture(scope="module")
def sandbox() -> Iterator[Sandbox]:
    sandbox = Sandbox(slots=1)
    yield sandbox
    sandbox.close()


class Service:
    """A service on loopback that remembers what it was asked."""

    def __init__(self, answers: Handler) -> None:
        self.asked: list[Received] = []
        self._answers = answers

    def __call__(self, request: Received, peer: Peer) -> None:
        self.asked.append(request)
        self._answers(request, peer)


def job(server: Server, tools: Tools, *, attempt: int = 1, **given: object) -> StepJob:
    """A job of an ``http`` step for ``BODY``, whose ``auth`` is known to the worker."""
    table = {"url": server.url("/text"), "private": True, **given}
    parameters = parse_parameters("http", table)
    assert not isinstance(parameters, str), parameters
    source, digest = tools.scratch.parent / "source", hashlib.sha256(BODY).hexdigest()
    source.write_bytes(BODY)
    tools.blobs.put_file(source, digest)
    token = Bearer(Secret("env:OCR_TOKEN", TOKEN))
    known = {AUTH: credentials_of(token, http=tools.http, clock=tools.clock, target=Target())}
    step = Step("ocr", "http", parameters=parameters)
    size_bytes, kind = len(BODY), "application/pdf"
    return StepJob("job_7", step, digest, size_bytes, kind, "scan.pdf", attempt, known)


def done(tools: Tools, sandbox: Sandbox, work: StepJob) -> TransformOutcome:
    for left in tools.scratch.glob("outputs/*"):
        left.unlink()
    if (tools.scratch / "outputs").exists():
        (tools.scratch / "outputs").rmdir()
    return transform(work, tools, sandbox)


def test_the_file_is_posted_and_the_answer_is_kept(tools: Tools, sandbox: Sandbox) -> None:
    service = Service(answering(200, b"read text", content_type="Text/Plain; charset=utf-8"))
    with serving(service) as server:
        outcome = done(tools, sandbox, job(server, tools))
    digest = hashlib.sha256(b"read text").hexdigest()
    assert outcome == Done((Made("ocr", digest, 9, "text/plain"),))
    kept = tools.blobs.path_of(digest)
    assert kept is not None
    assert kept.read_bytes() == b"read text"
    (asked,) = service.asked
    assert (asked.method, asked.target, asked.body) == ("POST", "/text", BODY)
    assert asked.header("idempotency-key") == "job_7"
    assert asked.header("content-type") == "application/pdf"
    assert asked.header("content-length") == str(len(BODY))
    assert asked.header("transfer-encoding") == ""


def test_a_repeat_waits_as_told_and_sends_the_same_key(tools: Tools, sandbox: Sandbox) -> None:
    service = Service(
        in_turn(
            answering(429, retry_after="7"),
            answering(503, retry_after="Fri, 01 Jan 2100 00:00:00 GMT"),
            answering(200, b"x"),
        )
    )
    with serving(service) as server:
        outcomes = [
            done(tools, sandbox, job(server, tools, attempt=attempt)) for attempt in (1, 2, 3)
        ]
    assert outcomes[0] == Again("answered 429", wait_s=7.0)
    assert isinstance(outcomes[1], Again)
    assert outcomes[1].wait_s is not None
    left_s = (datetime(2100, 1, 1, tzinfo=UTC) - tools.clock.now()).total_seconds()
    assert outcomes[1].wait_s >= min(left_s, 60.0)
    assert isinstance(outcomes[2], Done)
    assert [asked.header("idempotency-key") for asked in service.asked] == ["job_7"] * 3


@pytest.mark.parametrize("status", [400, 410, 413, 422])
def test_a_refusal_for_good_is_final(tools: Tools, sandbox: Sandbox, status: int) -> None:
    with serving(answering(status, b"why not")) as server:
        assert done(tools, sandbox, job(server, tools)) == Dead(f"answered {status}")


def test_a_service_may_say_that_the_step_is_not_for_the_file(
    tools: Tools, sandbox: Sandbox
) -> None:
    with serving(answering(415)) as server:
        outcome = done(tools, sandbox, job(server, tools))
    assert outcome == Done(NotApplicable("answered 415: not for application/pdf"))


def test_other_failures_are_tried_again(tools: Tools, sandbox: Sandbox) -> None:
    for status in (401, 404, 500):
        with serving(answering(status)) as server:
            assert done(tools, sandbox, job(server, tools)) == Again(f"answered {status}")


def test_an_answer_that_is_too_large_is_cut_off(tools: Tools, sandbox: Sandbox) -> None:
    with serving(lambda _, peer: peer.respond(200, b"x" * 3000)) as server:
        outcome = done(tools, sandbox, job(server, tools, max_size="1 KiB"))
    assert isinstance(outcome, Dead)
    assert "larger than" in outcome.reason
    assert (tools.scratch / "outputs" / "answer").stat().st_size == 1024


def test_an_answer_that_breaks_off_is_no_artifact(tools: Tools, sandbox: Sandbox) -> None:
    def handle(_: Received, peer: Peer) -> None:
        peer.respond(200, b"half", length=8)
        peer.close()

    with serving(handle) as server:
        assert isinstance(done(tools, sandbox, job(server, tools)), Again)


def test_an_empty_answer_is_final_the_second_time(tools: Tools, sandbox: Sandbox) -> None:
    with serving(answering(200)) as server:
        assert isinstance(done(tools, sandbox, job(server, tools)), Again)
        assert isinstance(done(tools, sandbox, job(server, tools, attempt=2)), Dead)


def test_a_service_that_hangs_is_given_up_on_time(tools: Tools, sandbox: Sandbox) -> None:
    with serving(lambda _, peer: peer.hang()) as server:
        outcome = done(tools, sandbox, job(server, tools, timeout="1s"))
    assert outcome == Again("no whole answer within timeout")


@pytest.mark.req("E11")
def test_a_redirect_is_not_followed(tools: Tools, sandbox: Sandbox) -> None:
    elsewhere = Service(answering(200, b"taken"))
    with serving(elsewhere) as other, serving(answering(307, location=other.url())) as server:
        outcome = done(tools, sandbox, job(server, tools, auth=AUTH))
    assert isinstance(outcome, Again)
    assert "redirect" in outcome.reason
    assert elsewhere.asked == []


@pytest.mark.req("E11")
def test_a_private_address_is_asked_only_where_allowed(tools: Tools, sandbox: Sandbox) -> None:
    service = Service(answering(200, b"x"))
    with serving(service) as server:
        outcome = done(tools, sandbox, job(server, tools, private=False))
    assert isinstance(outcome, Again)
    assert "address not allowed" in outcome.reason
    assert service.asked == []


@pytest.mark.req("F7")
def test_the_secret_is_sent_and_is_nowhere_else(
    tools: Tools, sandbox: Sandbox, capfd: pytest.CaptureFixture[str]
) -> None:
    service = Service(answering(422, TOKEN.encode(), x_echo=TOKEN))
    with serving(service) as server:
        work = job(server, tools, auth=AUTH)
        outcome = done(tools, sandbox, work)
    assert service.asked[0].header("authorization") == f"Bearer {TOKEN}"
    written = "".join(capfd.readouterr())
    assert TOKEN not in written + repr(work) + repr(outcome)
    assert dict(work.step.parameters)["auth"] == AUTH


@pytest.mark.req("F7")
def test_a_whole_process_posts_again_under_one_key_and_keeps_the_secret(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / ".env").write_text(f"OCR_TOKEN={TOKEN}\n")
    service = Service(
        in_turn(answering(503, TOKEN.encode(), retry_after="1"), answering(200, b"x"))
    )
    with (
        serving(answering(200, r.PDF)) as source,
        serving(service) as ocr,
        serving(answering(204)) as erp,
    ):
        step = f'{{ name = "ocr", use = "http", url = "{ocr.url()}", private = true, auth = "{AUTH}" }}'
        config = r.configured(
            tmp_path,
            source=source.host,
            destination=erp.url("/hooks"),
            recipe=f"transforms = [{step}]",
        )
        with r.running(config) as process:
            ledger = process.base.ledger
            r.submit(ledger, r.version_accepted(ledger, source.url("/f")))
            r.until(lambda: len(erp.requests) == 1, within_s=30)
    assert [asked.body for asked in service.asked] == [r.PDF, r.PDF]
    assert {asked.header("authorization") for asked in service.asked} == {f"Bearer {TOKEN}"}
    (key,) = {asked.header("idempotency-key") for asked in service.asked}
    assert key.startswith("job_")
    (tmp_path / ".env").unlink()
    written = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert any(
        AUTH.encode() in path.read_bytes() for path in written if path.name != "laufzettel.toml"
    )
    assert not [path for path in written if TOKEN.encode() in path.read_bytes()]
    assert TOKEN not in "".join(capfd.readouterr())


def test_an_auth_that_is_configured_no_more_sends_nothing(tools: Tools, sandbox: Sandbox) -> None:
    service = Service(answering(200, b"x"))
    with serving(service) as server:
        outcome = done(tools, sandbox, job(server, tools, auth="bearer env:GONE"))
    assert isinstance(outcome, Again)
    assert not outcome.counted
    assert service.asked == []


@pytest.mark.parametrize(
    "url", ["", "ftp://x/", "text", "https://u:p@x/", "http://[::1", "env:URL"]
)
def test_an_address_that_cannot_be_asked_is_refused_with_the_recipe(url: str) -> None:
    said = pinned(Step("ocr", "http", parameters=(("url", url),)))
    assert isinstance(said, str)
    assert said.startswith("url: ")
    assert "u:p" not in said

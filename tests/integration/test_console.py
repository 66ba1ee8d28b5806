"""The console over a real store and server, without a browser: who gets in, what pages say."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from app.clock import SettableClock
from app.store import tables as t
from app.web.console import advice, failing, language, overview, slip
from app.web.console import work as work_pages
from app.web.console.glance import Glances
from app.web.problems import TITLES
from domain.commands import Cause
from domain.outcomes import Dead, Unclear
from tests.installations import NOW, Installation, event, found, installed
from tests.visitors import Visitor, failed
from tests.workings import deliver, finish_message, process

PAGES = (
    "",
    "/files",
    "/dead-letters",
    "/messages",
    "/destinations",
    "/sources",
    "/log",
    "/replay",
    "/jobs",
    "/deliveries",
    "/audit",
    "/campaigns",
)
WHY = "the receiver asked for it"
CONSOLE = Path(failing.__file__).parent
NAMES = Path(__file__).parents[1] / "cases/files/names.jsonl"


@pytest.fixture
def running(tmp_path: Path) -> Iterator[Installation]:
    with installed(tmp_path) as installation:
        yield installation


@pytest.fixture
def visitor(running: Installation) -> Iterator[Visitor]:
    with Visitor(running) as someone:
        yield someone


@pytest.mark.req("F4")
@pytest.mark.parametrize("tongue", ["en", "de"])
def test_every_page_opens_empty_and_full(
    running: Installation, visitor: Visitor, tongue: str
) -> None:
    visitor.http.headers["accept-language"] = f"fr, {tongue};q=0.8"
    for path in PAGES:
        visitor.see(path)
    failed(running)
    running.send(event(id="evt-2", file_id="f-2"))
    stream = process(running)
    deliver(running)
    running.send(event(id="evt-2", file_id="f-2", file_name="other.pdf"))
    for path in (*PAGES, f"/files/{stream}"):
        assert f'<html lang="{tongue}"' in visitor.see(path)
    message = found(running, t.messages)[0].id
    delivery = found(running, t.deliveries)[0].id
    visitor.see(f"/messages/{message}")
    visitor.see(f"/deliveries/dlv_{delivery}")
    visitor.see(f"/files/{stream}?at=2026-11-30T10:15:30Z")
    visitor.see("/nowhere", 404)
    visitor.see("/files/fil_nothing", 404)
    visitor.see("/files?cursor=nonsense", 400)


@pytest.mark.req("F7")
def test_nobody_sees_anything_without_signing_in(running: Installation) -> None:
    failed(running)
    (row,) = found(running, t.files)
    with Visitor(running, None) as stranger:
        for path in (*PAGES, f"/files/{row.stream}", "/live", "/artifacts/x", "/elsewhere"):
            shown = stranger.see(path, 401)
            assert 'name="token"' in shown
            assert "a.pdf" not in shown
        assert stranger.http.post("/console/orders/hold").status_code == 401
        assert stranger.enter("lzt_wrong").status_code == 401
        assert stranger.enter(running.token("receiver", "destination:erp")).status_code == 401
        stranger.http.cookies.set("laufzettel_session", "tok_x.9999999999999.a.b", path="/console")
        stranger.see("/files", 401)


@pytest.mark.req("F7")
def test_a_session_ends_with_its_hours_its_token_and_by_signing_out(running: Installation) -> None:
    with Visitor(running) as someone:
        someone.see("/files")
        token = found(running, t.tokens)[0].id
        running.access.revoke(token, Cause("system"))
        someone.see("/files", 401)
    with Visitor(running) as someone:
        shown = someone.see("/files")
        proof = re.findall(r'name="proof" value="(\w+)"', shown)[0]
        answer = someone.http.post("/console/sign-out", data={"proof": proof})
        assert answer.headers["location"] == "/console/sign-in"
        someone.see("/files", 401)
    with Visitor(running) as someone:
        running.clock.advance(12 * 3600 + 1)  # type: ignore[attr-defined]
        someone.see("/files", 401)


@pytest.mark.req("F7")
def test_the_code_on_the_terminal_opens_the_console_once(running: Installation) -> None:
    code = running.web.sign_in_code
    with Visitor(running, None) as first, Visitor(running, None) as second:
        answer = first.enter(code)
        assert (answer.status_code, answer.headers["location"]) == (303, "/console/files")
        cookie = answer.headers["set-cookie"].lower()
        assert all(word in cookie for word in ("httponly", "samesite=strict", "path=/console"))
        first.see("/files")
        assert second.enter(code).status_code == 401


@pytest.mark.req("F7")
def test_a_form_of_another_site_or_session_is_refused(running: Installation) -> None:
    stream = failed(running)
    told = {"file": stream, "reason": WHY}
    with Visitor(running) as someone, Visitor(running) as other:
        assert someone.http.post("/console/orders/hold", data=told).status_code == 403
        shown = other.see(f"/files/{stream}")
        assert someone.send(shown, "hold", reason=WHY).status_code == 403
        shown = someone.see(f"/files/{stream}")
        for headers in (
            {"sec-fetch-site": "cross-site"},
            {"sec-fetch-site": "same-site"},
            {"origin": "https://evil.example"},
        ):
            someone.http.headers.update(headers)
            assert someone.send(shown, "hold", reason=WHY).status_code == 403
            for name in headers:
                del someone.http.headers[name]
        assert not running_holds(running)
        assert someone.send(shown, "hold", reason=WHY).status_code == 303
        assert running_holds(running)


def running_holds(running: Installation) -> bool:
    return bool(found(running, t.events, type="FileHeld"))


@pytest.mark.req("F7")
def test_a_viewer_sees_no_order_and_may_give_none(running: Installation) -> None:
    stream = failed(running)
    with Visitor(running, "viewer") as viewer:
        shown = viewer.see(f"/files/{stream}")
        assert "/console/orders/" not in shown
        proof = re.findall(r'name="proof" value="(\w+)"', shown)[0]
        for order in ("hold", "job-retry", "erase", "dead", "switch", "compare", "whole-body"):
            told = {"proof": proof, "reason": WHY, "file": stream}
            answer = viewer.http.post(f"/console/orders/{order}", data=told)
            assert answer.status_code == 403, order
    with Visitor(running, "operator", "source:t") as limited:
        limited.see(f"/files/{stream}", 404)
        assert "a.pdf" not in limited.see("/files")
    with Visitor(running, "operator") as operator:
        assert "orders/erase" not in operator.see(f"/files/{stream}")


@pytest.mark.req("F7")
def test_no_page_lets_anything_foreign_run(running: Installation, visitor: Visitor) -> None:
    stream = failed(running)
    for path in (*PAGES, f"/files/{stream}", "/sign-in", "/nowhere", "/static/console.js"):
        answer = visitor.http.get(f"/console{path}")
        policy = answer.headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "unsafe" not in policy
        assert answer.headers["x-content-type-options"] == "nosniff"
        if "html" in answer.headers["content-type"]:
            assert not re.search(r"<script(?![^>]*\bsrc=)|<style|\sstyle=|\son\w+=", answer.text)


@pytest.mark.req("F4")
@pytest.mark.req("F7")
def test_names_and_reasons_are_shown_as_they_are_and_never_run(
    running: Installation, visitor: Visitor
) -> None:
    names = [json.loads(line)["name"] for line in NAMES.read_text("utf-8").splitlines()]
    hostile = [name for name in names if re.search(r"[<>{'\u202e]", name)]
    for number, name in enumerate(hostile):
        running.send(event(id=f"evt-{number}", file_id=f"<b>{number}", file_name=name))
    process(running)
    for row in found(running, t.messages, state="pending"):
        finish_message(running, row.id, Dead("<script>alert(1)</script> {{7*7}}"))
    streams = [row.stream for row in found(running, t.files)]
    for path in (*PAGES, *(f"/files/{stream}" for stream in streams)):
        shown = visitor.see(path)
        assert "<img src=x" not in shown
        assert "<svg onload" not in shown
        assert "<script>alert" not in shown
        assert "<b>0" not in shown
        assert "\u202e" not in shown
        assert "is 49" not in shown
    assert "&lt;img src=x onerror=alert(1)&gt;" in visitor.see("/files")
    assert "{{7*7}} ${7*7}" in visitor.see("/files")
    assert visitor.see("/files?q=%22%3E%3Cscript%3E").count("<script>") == 0


@pytest.mark.req("D4")
def test_artifacts_are_downloads(running: Installation, visitor: Visitor) -> None:
    running.send(event(file_name="Übersicht.pdf"))
    process(running)
    for row in found(running, t.artifacts):
        answer = visitor.http.get(f"/console/artifacts/{row.id}")
        assert answer.headers["content-disposition"].startswith("attachment")
        assert answer.headers["content-security-policy"].startswith("sandbox")
    for wrong in ("..%2f..%2fetc%2fpasswd", "%2e%2e%2f", "art_x"):
        assert visitor.http.get(f"/console/artifacts/{wrong}").status_code == 404


@pytest.mark.req("F2")
def test_a_job_is_retried_from_its_slip_with_a_reason_that_the_audit_shows(
    running: Installation, visitor: Visitor
) -> None:
    stream = failed(running)
    shown = visitor.see(f"/files/{stream}")
    assert "protected by a password" in shown
    assert visitor.send(shown, "job-retry", reason=" ").status_code == 422
    answer = visitor.send(shown, "job-retry", reason=WHY)
    assert answer.headers["location"] == f"/console/files/{stream}?said=recorded"
    assert "It is recorded" in visitor.see(f"/files/{stream}?said=recorded")
    assert visitor.send(shown, "job-retry", reason=WHY).status_code == 303  # the same key
    assert len(found(running, t.events, type="JobRetried")) == 1
    audit = visitor.see("/audit")
    assert WHY in audit
    assert "root" in audit


@pytest.mark.req("F2")
def test_dead_letters_are_brought_back_by_cause_after_a_look_at_what_would_happen(
    running: Installation, visitor: Visitor
) -> None:
    for number in range(3):
        failed(running, number)
    failed(running, 9, "answered 503 <b>")
    shown = visitor.see("/dead-letters")
    assert len(re.findall(r"<section", shown)) == 2
    preview = visitor.send(shown, "dead").text
    assert "3 match; 3 would be tried again." in preview
    assert len(found(running, t.jobs, state="dead")) == 4
    assert visitor.send(preview, "dead", reason="").status_code == 422
    done = visitor.send(preview, "dead", reason=WHY).text
    assert "3 matched; 3 are tried again." in done
    assert [row.error for row in found(running, t.jobs, state="dead")] == ["answered 503 <b>"]
    rest = visitor.send(visitor.see("/dead-letters"), "dead", verb="discard").text
    assert visitor.send(rest, "dead", reason=WHY).status_code == 200
    assert "Nothing gave up" in visitor.see("/dead-letters")


@pytest.mark.req("F2")
def test_parts_are_paused_and_resumed(running: Installation, visitor: Visitor) -> None:
    for page, what in (("/destinations", "destination:erp"), ("/sources", "source:s")):
        assert visitor.press(page, "switch", reason=WHY).status_code == 303
        assert [row.what for row in found(running, t.controls)] == [what]
        assert WHY in visitor.see(page)
        assert visitor.press(page, "switch", reason="done").status_code == 303
        assert found(running, t.controls) == []
    # No part of this installation sends anything.
    assert visitor.press("/destinations", "ping", reason=WHY).status_code == 503
    told = {"kind": "all", "verb": "pause", "reason": WHY}
    assert visitor.press("/sources", "switch", **told).status_code == 303
    assert "Paused: all" in visitor.see("")


@pytest.mark.req("E5")
def test_an_unclear_message_is_settled_and_a_delivered_one_sent_again(
    running: Installation, visitor: Visitor
) -> None:
    running.send(event())
    stream = process(running)
    (message,) = found(running, t.messages)
    finish_message(running, message.id, Unclear("no answer came"))
    assert "Messages" in visitor.see("")
    assert visitor.press(f"/files/{stream}", "resolve", reason=WHY).status_code == 303
    assert found(running, t.messages)[0].state == "delivered"
    assert visitor.press(f"/messages/{message.id}", "redeliver", reason=WHY).status_code == 303
    assert found(running, t.messages)[0].state == "pending"


@pytest.mark.req("A8")
def test_a_conflict_is_settled_and_its_body_shown_whole_only_on_record(
    running: Installation, visitor: Visitor
) -> None:
    running.send(event())
    running.send(event(file_name="Geheim.pdf"))
    (delivery,) = found(running, t.deliveries, verdict="conflict")
    page = f"/deliveries/dlv_{delivery.id}"
    assert "Geheim" not in visitor.see(page)
    assert "Geheim" in visitor.press(page, "whole-body").text
    assert len(found(running, t.events, type="BodyShown")) == 1
    assert visitor.press(page, "accept-as-new", reason=WHY).status_code == 303
    assert "orders/dismiss" not in visitor.see(page)


@pytest.mark.req("F3")
def test_the_past_is_shown_a_selection_run_again_and_the_rows_compared(
    running: Installation, visitor: Visitor
) -> None:
    running.send(event())
    stream = process(running)
    first = str(found(running, t.positions)[-1].position)
    moved = visitor.http.get("/console/replay/file", params={"q": "f-1", "at": first})
    assert moved.headers["location"] == f"/console/files/{stream}?at={first}"
    assert "This is how the file was" in visitor.see(f"/files/{stream}?at={first}")
    preview = visitor.press("/replay", "reprocess-many").text
    assert "1 files match" in preview
    assert "Nothing would happen" in visitor.press(f"/files/{stream}", "reprocess").text
    assert visitor.press("/replay", "compare").status_code == 303
    looks = (visitor.see("/replay") for _ in range(1000))
    assert "0 rows differ" in next(shown for shown in looks if "rows differ" in shown)


@pytest.mark.req("F4")
def test_an_open_page_is_told_when_the_log_moves(running: Installation, visitor: Visitor) -> None:
    with visitor.http.stream("GET", "/console/live") as answer:
        lines = answer.iter_lines()
        assert next(line for line in lines if line.startswith("event: ")) == "event: moved"
        running.send(event())
        assert next(line for line in lines if line.startswith("event: ")) == "event: moved"


@pytest.mark.req("F4")
def test_language_and_theme_are_kept_and_lead_nowhere_else(
    running: Installation, visitor: Visitor
) -> None:
    visitor.http.get("/console/language/de")
    visitor.http.get("/console/theme/dark")
    shown = visitor.see("/dead-letters")
    assert '<html lang="de" data-theme="dark">' in shown
    assert "Nichts wurde aufgegeben." in shown
    for away in (
        "https://evil.example/",
        "//evil.example",
        "/api/v1/x",
        "/console\\@evil",
        "/consolex",
    ):
        answer = visitor.http.get("/console/language/en", params={"back": away})
        assert answer.headers["location"] == "/console", away


@pytest.mark.req("F4")
def test_every_word_is_there_in_both_languages() -> None:
    templates = "".join(p.read_text("utf-8") for p in (CONSOLE / "templates").glob("*.html"))
    wanted = set(re.findall(r'\bt\("((?:[^"\\]|\\.)*)"', templates))
    wanted |= set(re.findall(r'else "([^"]+)", \w+=', templates))
    wanted |= {name for _, name in re.findall(r'\("(/[\w-]+|)", "([\w ]+)"\)', templates)}
    wanted |= {*overview.NEEDS.values(), *slip.EVENT_WORDS.values(), *slip.VERDICTS.values()}
    wanted |= {*TITLES.values(), *work_pages.MESSAGE_STATES, *work_pages.JOB_STATES}
    wanted |= set(work_pages.VERDICTS)
    for each in advice.all_advice():
        wanted |= {each.meaning, each.mend}
    german = language.german()
    assert wanted - german.keys() == set()
    for english, told in german.items():
        assert set(re.findall(r"{\w+}", english)) == set(re.findall(r"{\w+}", told)), english


def test_what_is_costly_to_count_is_counted_once_in_a_few_seconds() -> None:
    clock = SettableClock(NOW)
    glances = Glances(clock)
    counts: list[float] = []

    def counted(costs_s: float) -> dict[str, float]:
        counts.append(costs_s)
        clock.advance(costs_s)
        return {"cost": costs_s}

    for costs_s, times in ((0.0, 3), (2.0, 1)):
        counts.clear()
        for _ in range(3):
            assert glances.of("all", lambda: counted(costs_s)) == {"cost": costs_s}  # noqa: B023
        assert len(counts) == times
    clock.advance(6)
    glances.of("all", lambda: counted(2.0))
    assert len(counts) == 2

"""Cases of hostile and strange names, as the API and the console's pages show them."""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import httpx
import pytest

from app.store import tables as t
from domain.outcomes import Dead
from tests.deliveries import refused
from tests.installations import SOURCE, Installation, count, event, found, installed
from tests.visitors import Visitor
from tests.workings import finish_job, finish_message, process

NAMES = [
    json.loads(line)["name"]
    for line in (Path(__file__).parent / "files/names.jsonl").read_text("utf-8").splitlines()
]
MARKUP = [name for name in NAMES if re.search(r"[<>{'\"]", name)]
RENAMING = SOURCE.replace(
    '"file.deleted"  = "deleted"', '"file.deleted"  = "deleted"\n"file.renamed" = "renamed"'
)
STRICT = RENAMING.replace("[sources.s.map]", 'unknown_fields = "refuse"\n[sources.s.map]')
LISTS = (
    "/files", "/dead-letters", "/messages", "/destinations", "/sources", "/log", "/jobs",
    "/deliveries", "/audit",
)  # fmt: skip
PAGES = (*LISTS, "", "/replay")
APIS = (*LISTS, "/source-events", "/recipes", "/steps", "/stats", "/status", "/feed/erp")


class Page(HTMLParser):
    """What a browser makes of a page: its text, and what could run or lead away."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.words: list[str] = []
        self.wrong: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        told = dict(attrs)
        handlers = [name for name in told if name.startswith("on") or name == "style"]
        leads = [told.get(name) or "/" for name in ("src", "href", "action") if name in told]
        away = [to for to in leads if not to.startswith(("/console", "/api/v1/", "#", "?", "/"))]
        away += [to for to in leads if to.startswith(("//", "/\\"))]
        if tag == "script" and "src" not in told:
            handlers.append("inline script")
        self.wrong += [f"{tag} {what}" for what in (*handlers, *away)]

    def handle_data(self, data: str) -> None:
        self.words.append(data)

    @property
    def text(self) -> str:
        return " ".join(self.words)


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Installation]:
    """Every name where names can be: files, ids, fields, answers, reasons."""
    with installed(tmp_path_factory.mktemp("names"), STRICT) as running:
        for number, name in enumerate(NAMES):
            hostile_id = f"{number} {name if name in MARKUP else ''}"
            body = event(id=hostile_id, file_id=hostile_id, file_name=name)
            assert running.send(body).status_code == 202, name
        process(running)
        for row, name in zip(found(running, t.messages), NAMES, strict=True):
            finish_message(running, row.id, Dead(f"answered 422: {name}"))
        running.send(event(id="one more", file_id="dead"))
        (job,) = found(running, t.jobs, state="ready")
        finish_job(running, job.id, Dead(MARKUP[0]))
        for name in MARKUP:
            assert running.send(event(id=f"no {name}", **{name: 1})).status_code == 422
        refused(running, len(MARKUP))
        admin = running.token()
        for row, name in zip(found(running, t.files), NAMES, strict=False):
            why = {"reason": f"because {name}"}
            assert running.api("POST", f"/files/{row.stream}/hold", admin, json=why).is_success
        why = {"reason": f"because {MARKUP[0]}"}
        assert running.api("POST", "/destinations/erp/pause", admin, json=why).is_success
        yield running


def clean(name: str) -> str:
    """What of a name every showing has in common: its words, less what cannot be seen."""
    return re.sub(r"[\x00-\x1f\u2400\ufffd\s]+", "", name)


def strings(value: Any) -> Iterator[str]:
    """All keys and values in a document."""
    if isinstance(value, dict):
        for key, held in value.items():
            yield key
            yield from strings(held)
    elif isinstance(value, list):
        for held in value:
            yield from strings(held)
    else:
        yield str(value)


@pytest.mark.req("F7")
def test_g_01_each_api_answer_holds_every_name_as_data(hostile: Installation) -> None:
    admin = hostile.token()
    streams = [row.stream for row in found(hostile, t.files)]
    shown: dict[str, str] = {}
    for path in (*APIS, *(f"/files/{stream}" for stream in streams)):
        answer = hostile.api("GET", path, admin, params={"limit": 200} if path in LISTS else {})
        assert answer.status_code == 200, (path, answer.text)
        assert answer.headers["content-type"] == "application/json", path
        assert answer.headers["x-content-type-options"] == "nosniff", path
        shown[path] = clean(" ".join(strings(answer.json())))
    for name in NAMES:
        assert clean(name) in shown["/files"], name
        assert clean(name) in shown["/audit"], name
    for name in MARKUP:
        assert clean(name) in shown["/deliveries"], name


@pytest.mark.req("F7")
def test_g_01_each_page_shows_every_name_and_runs_none(hostile: Installation) -> None:
    streams = [row.stream for row in found(hostile, t.files)]
    messages = [row.id for row in found(hostile, t.messages)]
    deliveries = [f"dlv_{row.id}" for row in found(hostile, t.deliveries)]
    seen: dict[str, str] = {}
    with Visitor(hostile) as visitor:
        for path in (
            *PAGES,
            *(f"/files/{stream}" for stream in streams),
            *(f"/messages/{message}" for message in messages),
            *(f"/deliveries/{delivery}" for delivery in deliveries),
        ):
            answer = visitor.http.get(f"/console{path}", params={"limit": 200})
            assert answer.status_code == 200, (path, answer.text[:500])
            page = Page(answer.text)
            assert page.wrong == [], path
            policy = answer.headers["content-security-policy"]
            assert "script-src 'self'" in policy
            assert "unsafe" not in policy
            seen[path] = clean(page.text)
    for stream, name in zip(streams, NAMES, strict=False):
        row = found(hostile, t.files, stream=stream)[0]
        assert clean(row.name) in seen[f"/files/{stream}"], name
    everything = "".join(seen.values())
    for name in MARKUP:
        assert clean(name) in everything, name
    assert "49${7*7}" not in everything
    assert "${49}" not in everything


@pytest.mark.req("F7")
def test_g_01_each_download_has_one_plain_header_for_its_name(hostile: Installation) -> None:
    admin = hostile.token()
    with Visitor(hostile) as visitor:
        for row in found(hostile, t.artifacts):
            assert_plain(hostile.api("GET", f"/artifacts/{row.id}", admin))
            opened = visitor.http.get(f"/console/artifacts/{row.id}")
            assert_plain(opened)
            assert opened.headers["content-disposition"].startswith("attachment")


def assert_plain(answer: httpx.Response) -> None:
    """A download that nobody runs, under a name that is one and has no path."""
    assert answer.status_code == 200
    assert not [name for name in answer.headers if "injected" in name]
    assert answer.headers["x-content-type-options"] == "nosniff"
    disposition = answer.headers["content-disposition"]
    assert disposition.isascii()
    assert disposition.isprintable()
    assert re.fullmatch(
        r"(inline|attachment); filename=\"[^\"\\/]+\"(; filename\*=UTF-8''[\w.%!#$&+^`|~-]+)?",
        disposition,
    ), disposition
    long = re.search(r"filename\*=UTF-8''(.+)", disposition)
    if long is not None:
        told = unquote(long[1])
        assert not re.search(r"[/\\\x00-\x1f]", told), told
        assert told not in {".", ".."}


@pytest.mark.req("B8", "C6")
@pytest.mark.usefixtures("either_database")
def test_c_15_two_unicode_forms_are_two_files_that_either_form_finds(tmp_path: Path) -> None:
    apart, whole = "A\u0308rger.pdf", "\u00c4rger.pdf"
    assert unicodedata.normalize("NFC", apart) == whole
    with installed(tmp_path, RENAMING) as running:
        running.send(event(id="e-1", file_id="f-1", file_name=apart))
        running.send(event(id="e-2", file_id="f-2", file_name=whole))
        process(running)
        for row in found(running, t.messages):
            finish_message(running, row.id, Dead("x"))
        token = running.token("viewer")
        states = running.api("GET", "/files", token).json()["items"]
        assert {(f["file_id"], f["name"]) for f in states} == {("f-1", apart), ("f-2", whole)}
        for form in (apart, whole, whole.upper()):
            answer = running.api("GET", "/files", token, params={"q": form}).json()
            assert {file["file_id"] for file in answer["items"]} == {"f-1", "f-2"}
        jobs = count(running, t.jobs)
        renamed = event(
            id="e-3", type="file.renamed", file_id="f-1", file_name=whole,
            occurred_at="2026-11-30T10:15:10Z",
        )  # fmt: skip
        assert running.send(renamed).status_code == 202
        assert count(running, t.events, type="FileRenamed") == 1
        assert count(running, t.jobs) == jobs
        assert {row.name for row in found(running, t.files)} == {whole}

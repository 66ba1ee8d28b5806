"""Cases of who may see and do what, over real HTTP: each test is named after its case."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from app.clock import SettableClock
from app.store import tables as t
from app.web.access import Role, TokenWish
from app.web.console.orders import DEEDS
from domain.commands import Cause
from tests.installations import (
    NOW,
    OLD_SECRET,
    SOURCE,
    Installation,
    count,
    event,
    found,
    installed,
    signature,
)
from tests.visitors import Visitor
from tests.workings import deliver, process

# Where nobody signed in: what shows no content, and what lets people in.
OPEN_API = {"/api/v1/sign-in", "/schema", "/health/live", "/health/ready", "/metrics"}
OPEN_PAGES = ("/console/sign-in", "/console/static", "/console/language", "/console/theme")
CONTENT = ("Vertrag", "F-secret", "evt-secret")
TWO_SOURCES = SOURCE + SOURCE.replace("[sources.s", "[sources.u").replace(
    "env:S_SECRET", "env:S_OLD_SECRET"
)


@pytest.fixture
def running(tmp_path: Path) -> Iterator[Installation]:
    """Everything that pages and answers could give away is there."""
    with installed(tmp_path, clock=SettableClock(NOW)) as installation:
        installation.send(event(id="evt-secret", file_id="F-secret", file_name="Vertrag.pdf"))
        process(installation)
        deliver(installation)
        other = event(id="evt-secret", file_id="F-secret", file_name="Vertrag 2.pdf")
        installation.send(other)
        yield installation


@pytest.mark.req("A3")
def test_a_payload_decides_neither_its_source_nor_its_tenant_nor_its_rights(
    tmp_path: Path,
) -> None:
    claims = {"source": "u", "tenant": "u", "role": "admin", "scope": ["source:u"]}
    body = event(**claims, file_source="u", file_tenant="u")
    with installed(tmp_path, TWO_SOURCES) as running:
        named = {"x_source": "u", "x_tenant": "u", "x_laufzettel_operator": "root"}
        assert running.send(body, **named).status_code == 202
        assert [row.source for row in found(running, t.files)] == ["s"]
        assert [row.source for row in found(running, t.receipts)] == ["s"]
        # Another's secret proves nothing here, whatever the body says.
        assert running.send(body, source="u").status_code == 401
        assert count(running, t.files) == 1
        proven = signature(body, OLD_SECRET)
        assert running.send(body, source="u", x_signature=proven).status_code == 202
        assert running.send(body, x_signature=proven).status_code == 401
        mine = running.api("GET", "/files", running.token("viewer", "source:u")).json()["items"]
        assert [(file["source"], file["file_id"]) for file in mine] == [("u", "f-1")]


@pytest.mark.req("F7")
@pytest.mark.parametrize("who", ["nobody", "expired", "unknown"])
def test_g_10_without_access_each_call_is_401_and_says_nothing(
    running: Installation, who: str
) -> None:
    header = {"nobody": "", "expired": f"Bearer {expired(running)}", "unknown": "Bearer lzt_x"}[who]
    asked = [call for call in api_calls(running) if call[1] not in OPEN_API]
    assert len(asked) > 40
    for method, path in asked:
        answer = running.http.request(method, path, headers={"authorization": header}, json={})
        assert (answer.status_code, answer.json()["type"]) == (401, "authentication"), path
        assert not any(word in answer.text for word in CONTENT)
    for path in OPEN_API - {"/api/v1/sign-in"}:
        shown = running.http.get(path).text
        assert not any(word in shown for word in CONTENT), path


@pytest.mark.req("F7")
def test_g_10_whoever_may_only_read_changes_nothing_over_the_api(running: Installation) -> None:
    writes = [c for c in api_calls(running) if c[0] != "GET" and c[1] not in OPEN_API]
    assert len(writes) > 20
    before = count(running, t.events)
    readers: list[tuple[Role, tuple[str, ...]]] = [
        ("viewer", ()),
        ("receiver", ("destination:erp",)),
    ]
    for role, scope in readers:
        token = running.token(role, *scope)
        before += 1
        for method, path in writes:
            body = {"reason": "test", "name": "x", "role": "admin"}
            answer = running.http.request(
                method, path, headers={"authorization": f"Bearer {token}"}, json=body
            )
            assert (answer.status_code, answer.json()["type"]) == (403, "forbidden"), path
    assert count(running, t.events) == before


@pytest.mark.req("F7")
@pytest.mark.parametrize("who", ["nobody", "expired"])
def test_g_10_without_a_session_each_page_and_form_is_401(running: Installation, who: str) -> None:
    with Visitor(running, None if who == "nobody" else "viewer") as visitor:
        running.clock.advance(12 * 3600 + 1)  # type: ignore[attr-defined]
        pages = [page for page in console_pages(running) if not page[1].startswith(OPEN_PAGES)]
        assert len(pages) > 15
        for method, path in pages:
            answer = visitor.http.request(method, path)
            assert answer.status_code == 401, (method, path)
            assert not any(word in answer.text for word in CONTENT)


@pytest.mark.req("F7")
def test_g_10_whoever_may_only_read_changes_nothing_at_the_console(running: Installation) -> None:
    with Visitor(running, "viewer") as visitor:
        before = count(running, t.events)
        proof = re.findall(r'name="proof" value="(\w+)"', visitor.see("/files"))[0]
        for order in (*DEEDS, "compare"):
            told = {"proof": proof, "reason": "test"}
            answer = visitor.http.post(f"/console/orders/{order}", data=told)
            assert answer.status_code == 403, order
        assert count(running, t.events) == before


@pytest.mark.req("F8")
def test_g_10_health_says_ok_or_not(running: Installation) -> None:
    assert running.http.get("/health/live").json() == {"status": "live"}
    ready = running.http.get("/health/ready").json()
    assert ready == {"status": "ready", "parts": dict.fromkeys(ready["parts"], "ok")}


def expired(running: Installation) -> str:
    """A token whose time is over."""
    wish = TokenWish("late", "admin", life_ms=1000)
    token = running.access.create(wish, Cause("system")).token
    running.clock.advance(2)  # type: ignore[attr-defined]
    return token


def routes(running: Installation) -> list[tuple[str, str]]:
    """Every method and path that the application answers, with ids of things that are there."""
    known: Any = running.web._rest.routes
    return [
        (method, filled(running, route.path))
        for route in known
        for method in sorted(getattr(route, "methods", ()))
        if method not in {"OPTIONS", "HEAD"}
    ]


def api_calls(running: Installation) -> list[tuple[str, str]]:
    return [call for call in routes(running) if not call[1].startswith(("/console", "/schema"))]


def console_pages(running: Installation) -> list[tuple[str, str]]:
    return [call for call in routes(running) if call[1].startswith("/console")]


def filled(running: Installation, path: str) -> str:
    """A path with real ids in place of its parameters."""
    ids = {
        "file": found(running, t.files)[0].stream,
        "message": found(running, t.messages)[0].id,
        "job": found(running, t.jobs)[0].id,
        "artifact": found(running, t.artifacts)[0].id,
        "delivery": f"dlv_{found(running, t.deliveries)[0].id}",
        "token": "tok_x",
        "name": "erp",
        "destination": "erp",
    }
    return re.sub(r"{(\w+):\w+}", lambda hit: ids.get(hit[1], "x"), path)

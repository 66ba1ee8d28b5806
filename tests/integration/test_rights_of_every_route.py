"""Role by endpoint, complete: a route without a row here fails, and so does a row without a route.

The table is what the contract says, written down by hand; the answers are asked for over HTTP.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from app.web.access import ROLES, Role
from tests.installations import Installation, installed

RANK: dict[Role, int] = {"receiver": 0, "viewer": 1, "operator": 2, "admin": 3}
SCOPES: dict[Role, tuple[str, ...]] = {"receiver": ("destination:erp",)}

# The lowest role that a route of the API is open to; "" is open to anybody.
API: dict[str, Role | str] = {
    "GET /artifacts/{artifact}": "receiver",
    "GET /alerts": "viewer",
    "GET /audit": "viewer",
    "GET /campaigns": "viewer",
    "POST /campaigns": "operator",
    "GET /campaigns/{campaign}": "viewer",
    "POST /campaigns/{campaign}/pause": "operator",
    "POST /campaigns/{campaign}/resume": "operator",
    "POST /campaigns/{campaign}/stop": "operator",
    "GET /dead-letters": "viewer",
    "POST /dead-letters/discard": "operator",
    "POST /dead-letters/retry": "operator",
    "GET /deliveries": "viewer",
    "GET /deliveries/{delivery}": "viewer",
    "POST /deliveries/{delivery}/accept-as-new": "operator",
    "POST /deliveries/{delivery}/dismiss": "operator",
    "GET /destinations": "viewer",
    "POST /destinations/{name}/pause": "operator",
    "POST /destinations/{name}/resume": "operator",
    "POST /destinations/{name}/test": "operator",
    "GET /feed/{destination}": "receiver",
    "GET /files": "viewer",
    "GET /files/{file}": "viewer",
    "GET /files/{file}/certificate": "operator",
    "POST /files/{file}/erase": "admin",
    "POST /files/{file}/hold": "operator",
    "GET /files/{file}/log": "viewer",
    "POST /files/{file}/release": "operator",
    "POST /files/{file}/reprocess": "operator",
    "GET /files/{file}/slip": "operator",
    "GET /jobs": "viewer",
    "GET /jobs/{job}": "viewer",
    "POST /jobs/{job}/cancel": "operator",
    "POST /jobs/{job}/retry": "operator",
    "GET /log": "viewer",
    "GET /messages": "receiver",
    "GET /messages/{message}": "receiver",
    "POST /messages/{message}/redeliver": "operator",
    "POST /messages/{message}/resolve": "operator",
    "POST /pause": "operator",
    "GET /receipts/{receipt}": "viewer",
    "GET /recipes": "viewer",
    "POST /recipes/{name}/pause": "operator",
    "POST /recipes/{name}/resume": "operator",
    "POST /resume": "operator",
    "GET /secrets": "viewer",
    "POST /sign-in": "",
    "GET /source-events": "viewer",
    "GET /sources": "viewer",
    "POST /sources/{name}/pause": "operator",
    "POST /sources/{name}/resume": "operator",
    "GET /stats": "viewer",
    "GET /status": "viewer",
    "GET /steps": "viewer",
    "POST /steps/{name}/pause": "operator",
    "POST /steps/{name}/resume": "operator",
    "GET /tokens": "admin",
    "POST /tokens": "admin",
    "DELETE /tokens/{token}": "admin",
}
# What anybody reaches outside the API; all else of the console wants a session.
OPEN = {
    "GET /console/language/{tag}",
    "GET /console/sign-in",
    "POST /console/sign-in",
    "GET /console/static/{name}",
    "GET /console/theme/{name}",
    "GET /health/live",
    "GET /health/ready",
    "GET /metrics",
    "GET /schema",
    "GET /schema/openapi.json",
    "GET /schema/{path}",
}


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Installation]:
    folder: Path = tmp_path_factory.mktemp("rights")
    with installed(folder) as installation:
        yield installation


def routes(running: Installation) -> set[str]:
    """Every method and path that the program answers."""
    rest: Any = running.web._rest
    return {
        f"{method} {re.sub(r':[a-z]+}', '}', route.path)}"
        for route in rest.routes
        for method in getattr(route, "methods", ())
        if method not in {"OPTIONS", "HEAD"}
    }


def addressed(row: str) -> tuple[str, str]:
    """A row's method, and its path with something in each place."""
    method, path = row.split(" ", 1)
    return method, re.sub(r"{\w+}", "erp", path)


@pytest.mark.req("F7")
def test_every_route_has_its_row_and_every_row_its_route(running: Installation) -> None:
    known = {row.replace(" ", " /api/v1", 1) for row in API} | OPEN
    others = {row for row in routes(running) if " /console" in row} - OPEN
    assert routes(running) - others == known


@pytest.mark.req("F7")
@pytest.mark.parametrize("role", ROLES)
def test_a_role_reaches_what_its_row_says_and_nothing_else(
    running: Installation, role: Role
) -> None:
    token = running.token(role, *SCOPES.get(role, ()))
    wrong = {}
    for row, least in API.items():
        if not least:
            continue
        method, path = addressed(row)
        # An order that says nothing is refused only after it is clear who gives it.
        answer = running.api(method, path, token, json={} if method == "POST" else None)
        may = RANK[role] >= RANK[least]  # type: ignore[index]
        if (answer.status_code == 403) == may or answer.status_code in {401, 500}:
            wrong[row] = answer.status_code
    assert wrong == {}


@pytest.mark.req("F7")
def test_nobody_reaches_anything_that_has_a_role(running: Installation) -> None:
    rows = (row for row, least in API.items() if least)
    asked = (addressed(row) for row in rows)
    got = {running.http.request(method, f"/api/v1{path}").status_code for method, path in asked}
    assert got == {401}


@pytest.mark.req("F4", "F7")
def test_the_console_shows_nothing_to_whoever_did_not_sign_in(running: Installation) -> None:
    asked = [addressed(row) for row in routes(running) - OPEN if " /console" in row]
    assert asked
    for method, path in asked:
        answer = running.http.request(method, path)
        told = answer.headers.get("location", "")
        is_sent_away = answer.status_code in {302, 303} and told.startswith("/console/sign-in")
        assert is_sent_away or answer.status_code in {401, 403}, (method, path, answer.status_code)


@pytest.mark.req("F7")
@pytest.mark.parametrize(
    "place",
    [
        "//evil.example/x",
        "https://evil.example",
        "/\\evil.example",
        "\\\\evil.example",
        "%2F%2Fevil",
    ],
)
def test_no_place_to_return_to_leads_elsewhere(running: Installation, place: str) -> None:
    for path in ("/console/sign-in", "/console/language/de", "/console/theme/dark"):
        for name in ("next", "back", "return", "to"):
            answer = running.http.get(path, params={name: place})
            told = answer.headers.get("location", "/console")
            assert re.match(r"/(?![/\\])", told), (path, name, told)


@pytest.mark.req("F7")
@pytest.mark.parametrize(
    "path",
    [
        "/console/static/../pages.py",
        "/console/static/..%2Fpages.py",
        "/console/static/%2e%2e%2f%2e%2e%2fauth.py",
        "/console/static/..%5Cpages.py",
        "/console/static/%00",
        "/console/static//etc/passwd",
        "/schema/../../etc/passwd",
    ],
)
def test_no_path_leads_out_of_the_folder_of_static_files(running: Installation, path: str) -> None:
    answer = running.http.get(path)
    assert answer.status_code in {303, 302, 400, 401, 404}, answer.status_code
    assert "import" not in answer.text
    assert "root:" not in answer.text

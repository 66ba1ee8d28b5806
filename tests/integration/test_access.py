from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import httpx
import pytest

from app.clock import SettableClock
from app.store import tables as t
from tests.installations import NOW, Installation, event, found, installed, signature

WISH = {"name": "Erika", "role": "viewer", "reason": "new colleague"}


@pytest.fixture
def running(tmp_path: Path) -> Iterator[Installation]:
    with installed(tmp_path, clock=SettableClock(NOW)) as installation:
        yield installation


def given(running: Installation, token: str, **wish: object) -> httpx.Response:
    return running.api("POST", "/tokens", token, json=WISH | wish)


@pytest.mark.req("F7")
def test_the_code_on_the_terminal_gives_one_admin_token_once(running: Installation) -> None:
    code = running.web.sign_in_code
    assert running.http.post("/api/v1/sign-in", json={"code": "x" * 12}).status_code == 401
    first = running.http.post("/api/v1/sign-in", json={"code": code})
    assert first.status_code == 201
    assert running.api("GET", "/tokens", first.json()["token"]).status_code == 200
    assert running.http.post("/api/v1/sign-in", json={"code": code}).status_code == 401


@pytest.mark.req("F7")
def test_the_code_is_void_after_five_wrong_tries(running: Installation) -> None:
    for _ in range(5):
        running.http.post("/api/v1/sign-in", json={"code": "wrong"})
    code = running.web.sign_in_code
    assert running.http.post("/api/v1/sign-in", json={"code": code}).status_code == 401


@pytest.mark.req("F7")
def test_there_is_no_code_while_anyone_has_access(tmp_path: Path) -> None:
    with installed(tmp_path) as running:
        running.token()
    with installed(tmp_path) as running:
        assert not running.web.sign_in_code


@pytest.mark.req("F7")
def test_a_token_is_shown_once_and_kept_as_a_hash(running: Installation, tmp_path: Path) -> None:
    token = running.token()
    made = given(running, token)
    assert made.status_code == 201
    secret = made.json()["token"]
    assert secret not in running.api("GET", "/tokens", token).text
    held = b"".join(path.read_bytes() for path in tmp_path.glob("laufzettel.db*"))
    assert secret.encode() not in held
    assert [row.type for row in found(running, t.events)].count("TokenCreated") == 2


@pytest.mark.req("F6", "F7")
def test_a_token_is_made_once_under_a_key_and_its_value_is_not_kept(
    running: Installation, tmp_path: Path
) -> None:
    token, key = running.token(), {"Idempotency-Key": "k-1"}
    first, again = (running.api("POST", "/tokens", token, json=WISH, headers=key) for _ in range(2))
    assert (first.status_code, again.status_code) == (201, 409)
    assert first.json()["id"] in again.json()["detail"]
    assert len(running.api("GET", "/tokens", token).json()) == 2
    held = b"".join(path.read_bytes() for path in tmp_path.glob("laufzettel.db*"))
    assert first.json()["token"].encode() not in held


@pytest.mark.req("A5", "F6")
def test_a_body_nested_without_end_is_refused_before_anyone_signs_in(
    running: Installation,
) -> None:
    answer = running.http.post("/api/v1/sign-in", content=b"[" * 50_000)
    assert (answer.status_code, answer.json()["type"]) == (400, "invalid-request")


@pytest.mark.req("F7")
@pytest.mark.parametrize(
    "header", ["", "Bearer", "Bearer lzt_wrong", "Basic abc", "Bearer " + "x" * 5000]
)
def test_whoever_has_no_token_is_401_and_learns_nothing(running: Installation, header: str) -> None:
    answer = running.http.get("/api/v1/tokens", headers={"authorization": header})
    assert (answer.status_code, answer.json()["type"]) == (401, "authentication")
    assert answer.headers["www-authenticate"] == "Bearer"
    assert "detail" not in answer.json()


@pytest.mark.req("F7")
def test_a_token_ends_when_its_time_is_over_or_it_is_revoked(running: Installation) -> None:
    admin = running.token()
    short = given(running, admin, role="admin", days=1).json()
    other = given(running, admin, role="admin").json()
    assert running.api("GET", "/tokens", short["token"]).status_code == 200
    assert isinstance(running.clock, SettableClock)
    running.clock.advance(timedelta(days=1).total_seconds())
    assert running.api("GET", "/tokens", short["token"]).status_code == 401
    revoked = running.api("DELETE", f"/tokens/{other['id']}", admin)
    assert revoked.json()["revoked_at"]
    assert running.api("GET", "/tokens", other["token"]).status_code == 401


@pytest.mark.req("F7")
def test_a_role_opens_what_it_may_and_nothing_above(running: Installation) -> None:
    admin = running.token()
    for role, scope in (("viewer", []), ("operator", []), ("receiver", ["destination:erp"])):
        made = given(running, admin, role=role, scope=scope)
        answer = running.api("GET", "/tokens", made.json()["token"])
        assert (answer.status_code, answer.json()["type"]) == (403, "forbidden")


@pytest.mark.req("F7")
@pytest.mark.parametrize(
    "wish",
    [
        {"role": "receiver"},
        {"role": "receiver", "scope": ["source:s"]},
        {"role": "admin", "scope": ["source:s"]},
        {"role": "viewer", "scope": ["destination:erp"]},
        {"name": " "},
    ],
)
def test_a_wish_that_makes_no_sense_is_refused(
    running: Installation, wish: dict[str, object]
) -> None:
    answer = given(running, running.token(), **wish)
    assert answer.status_code in {400, 422}
    assert answer.json()["detail"]


@pytest.mark.req("F8")
def test_health_says_live_ready_and_not_ready(running: Installation) -> None:
    assert running.http.get("/health/live").json() == {"status": "live"}
    ready = running.http.get("/health/ready")
    assert (ready.status_code, ready.json()["status"]) == (200, "ready")
    running.web.stop_taking()
    ready = running.http.get("/health/ready")
    assert (ready.status_code, ready.json()["parts"]["process"]) == (503, "stopping")
    assert running.http.get("/health/live").status_code == 200


@pytest.mark.req("F8")
def test_metrics_count_deliveries_by_what_became_of_them(running: Installation) -> None:
    body = event()
    for _ in range(2):
        running.send(body)
    running.send(body, x_signature=signature(b"other"))
    page = running.http.get("/metrics").text
    counts = dict(re.findall(r'deliveries_total\{source="s",verdict="(\w+)"\} (\S+)', page))
    assert counts == {"accepted": "1.0", "duplicate": "1.0", "rejected": "1.0"}


@pytest.mark.req("F6")
@pytest.mark.parametrize("path", ["/nothing", "/api/v1/nothing", "/hooks/nothing"])
def test_errors_are_problems(running: Installation, path: str) -> None:
    answer = running.http.get(path)
    assert (answer.status_code, answer.json()["type"]) == (404, "not-found")
    assert answer.headers["content-type"] == "application/problem+json"

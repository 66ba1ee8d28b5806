"""Users whom a trusted proxy has signed in; anybody else who sends its header is nobody."""

from __future__ import annotations

from pathlib import Path

import pytest

from app.config import Invalid, load
from app.store import tables as t
from tests.installations import SOURCE, Installation, found, installed
from tests.visitors import Visitor

HEADER = "X-Forwarded-User"
TRUSTED = 'trusted_proxies = ["127.0.0.0/8", "::1"]'
SIGN_IN = f'sign_in = {{ header = "{HEADER}", role = "viewer", roles = {{ ada = "operator" }} }}'


def visitor(running: Installation, name: str) -> Visitor:
    someone = Visitor(running, None)
    someone.http.headers[HEADER] = name
    return someone


@pytest.mark.req("F7")
def test_the_user_of_a_trusted_proxy_is_let_in_and_named_in_the_audit(tmp_path: Path) -> None:
    with installed(tmp_path, text=f"{TRUSTED}\n{SIGN_IN}\n{SOURCE}") as running:
        with visitor(running, "ada") as ada:
            assert "ada" in ada.see("/files")
            assert ada.press("/destinations", "switch", reason="upgrade").status_code == 303
            assert "ada" in ada.see("/audit")
        assert [e for e in found(running, t.events) if e.type == "Paused"]


@pytest.mark.req("F7")
def test_a_user_whom_the_roles_do_not_name_gets_the_common_role(tmp_path: Path) -> None:
    with (
        installed(tmp_path, text=f"{TRUSTED}\n{SIGN_IN}\n{SOURCE}") as running,
        visitor(running, "bob") as bob,
    ):
        assert "orders/switch" not in bob.see("/destinations")
    only = SIGN_IN.replace('role = "viewer", ', "")
    (tmp_path / "b").mkdir()
    with (
        installed(tmp_path / "b", text=f"{TRUSTED}\n{only}\n{SOURCE}") as running,
        visitor(running, "bob") as bob,
    ):
        bob.see("", 401)


@pytest.mark.req("F7")
@pytest.mark.parametrize(
    "laufzettel",
    [f'trusted_proxies = ["10.0.0.0/8"]\n{SIGN_IN}', TRUSTED],
    ids=["another address", "no sign-in by proxy"],
)
def test_a_header_from_anybody_else_opens_nothing(tmp_path: Path, laufzettel: str) -> None:
    with (
        installed(tmp_path, text=f"{laufzettel}\n{SOURCE}") as running,
        visitor(running, "ada") as ada,
    ):
        ada.see("", 401)


@pytest.mark.req("F7")
def test_two_names_an_empty_one_and_a_forged_form_are_refused(tmp_path: Path) -> None:
    with installed(tmp_path, text=f"{TRUSTED}\n{SIGN_IN}\n{SOURCE}") as running:
        for names in (["ada", "eve"], [""], ["x" * 201]):
            headers = [(HEADER, name) for name in names]
            assert running.http.get("/console", headers=headers).status_code == 401
        for proof in ("", "0" * 64):
            told = {"reason": "x", "what": "destination:erp", "proof": proof}
            answer = running.http.post("/console/orders/switch", data=told, headers={HEADER: "ada"})
            assert answer.status_code == 403
        assert running.http.get("/api/v1/files", headers={HEADER: "ada"}).status_code == 401


@pytest.mark.parametrize(
    "text, key",
    [
        (SIGN_IN, "laufzettel.trusted_proxies"),
        (f'{TRUSTED}\nsign_in = {{ header = "a b" }}', "laufzettel.sign_in.header"),
        (
            f'{TRUSTED}\nsign_in = {{ header = "X", roles = {{ a = "root" }} }}',
            "laufzettel.sign_in.roles.a",
        ),
        (f'{TRUSTED}\nsign_in = {{ header = "X", role = "king" }}', "laufzettel.sign_in.role"),
    ],
)
def test_a_sign_in_that_cannot_be_is_refused_by_its_key(
    tmp_path: Path, text: str, key: str
) -> None:
    path = tmp_path / "laufzettel.toml"
    path.write_text(f"[laufzettel]\n{text}\n")
    read = load(path, {})
    assert isinstance(read, Invalid)
    assert key in {problem.key for problem in read.problems}

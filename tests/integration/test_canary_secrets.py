"""A secret in every place that can hold one, a full run of everything, and a search for them all.

Each place's canary is looked for in all that the program says, writes and stores: as it is, in
base64, in hex and as it is written in an address. Where one may be found is written down here.
"""

from __future__ import annotations

import base64
import gzip
import hashlib
import hmac
import json
import re
import tarfile
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import pytest
from typer.testing import CliRunner

from app.cli import app
from app.store import tables as t
from tests import runtimes as r
from tests.canaries import KEYS, PLACES, Secretive, canary, secretive, signed, standard
from tests.commands import laufzettel
from tests.servers import closed_port

# Those that prove us to others: a run in which one was not used shows nothing of it.
USED = {
    "downloadbearer", "clientsecret", "accesstoken", "erpbearer", "erpheader", "erpquery",
    "crmsecret", "crmaccess", "proxypassword", "tracekey", "stepkey", "linkquery", "downloadbasic",
}  # fmt: skip
# What a source was told to fetch is part of the file: erasable, never shown. Nothing else is kept.
MAY_LIE_IN = {"linkquery": {"database", "backup"}}
SURFACES = ("log", "traces", "metrics", "database", "backup", "slip.json", "slip.html")


@pytest.fixture(scope="module")
def said(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """All that was said, written and stored, by surface."""
    folder = tmp_path_factory.mktemp("canaries")
    with secretive(folder) as made:
        deliver(made)
        r.until(lambda: is_settled(made), within_s=60)
        visit(made)
    made.said["log"] = made.log.getvalue()
    made.said["the wire"] = "\n".join(
        f"{request.target} {request.headers} {request.body.decode('utf-8', 'replace')}"
        for request in (*made.outside.requests, *made.collector.server.requests)
    )
    made.said["traces"] = "".join(str(span) for span in made.collector.spans)
    afterwards(made)
    return made.said


def is_settled(made: Secretive) -> bool:
    open_ = ("ready", "waiting", "pending", "unclear", "sending", "running")
    rows = [row for table in (t.jobs, t.messages) for row in r.rows(made.process.base.store, table)]
    return len(rows) > 10 and not any(row.state in open_ for row in rows)


# -- the run --------------------------------------------------------------------------------------


def deliver(made: Secretive) -> None:
    outside = made.outside.host
    for number, file_id in enumerate(("good", "dead", "away", "bad")):
        key = KEYS["STD_OLD" if number % 2 else "STD_NEW"]
        post(made, standard(outside, file_id), f"evt-{file_id}", key, expected=202)
    post(made, standard(outside, "good"), "evt-good", KEYS["STD_NEW"], expected=200)
    other = standard(outside, "good", name="other.txt")
    post(made, other, "evt-good", KEYS["STD_NEW"], expected=409)
    forged = {"webhook-signature": f"v1,{canary('forgery')}"}
    post(made, standard(outside, "x"), "evt-x", KEYS["STD_NEW"], expected=401, **forged)
    broken = f'{{"type": "{canary("malformed")}", '.encode()
    post(made, broken, "evt-y", KEYS["STD_NEW"], expected=400)
    breach = standard(outside, "z", version={"x": canary("breach")})
    post(made, breach, "evt-z", KEYS["STD_NEW"], expected=422)
    own(made)
    keyed(made)


def post(
    made: Secretive, body: bytes, event_id: str, key: str, *, expected: int, **more: str
) -> None:
    """A delivery with secrets of strangers in its other headers and its address."""
    stray = {
        "authorization": f"Bearer {canary('hookauth')}",
        "cookie": f"session={canary('hookcookie')}",
    }
    headers = signed(event_id, body, key) | stray | more
    url = f"/hooks/std?token={canary('hookquery')}"
    answer = made.http.post(url, content=body, headers=headers)
    assert answer.status_code == expected, answer.text
    made.heard(f"answer {event_id} {expected}", answer)


def own(made: Secretive) -> None:
    url = f"http://{made.outside.host}/files/own?sig={canary('linkquery')}"
    body = json.dumps({"id": "e", "type": "up", "file": "own", "version": 1, "url": url}).encode()
    proof = hmac.new(KEYS["OWN_SECRET"].encode(), body, hashlib.sha256).hexdigest()
    answer = made.http.post("/hooks/own", content=body, headers={"x-signature": proof})
    assert answer.status_code == 202, answer.text


def keyed(made: Secretive) -> None:
    """A source that proves itself by a password in a header, right and wrong."""
    for key, expected in ((KEYS["TOKEN_SOURCE"], 202), (canary("forgery"), 401)):
        body = {"doc_id": "7", "title": "k", "trigger": "document_added"}
        body["added"] = "2026-11-30T10:00:00Z"
        answer = made.http.post("/hooks/keyed", json=body, headers={"x-laufzettel-key": key})
        assert answer.status_code == expected, answer.text
        made.heard(f"answer keyed {answer.status_code}", answer)


# -- the visit ------------------------------------------------------------------------------------


def visit(made: Secretive) -> None:
    """Every page and every list, as each role; orders and refusals; the command line."""
    tokens = {role: token_of(made, role) for role in ("admin", "viewer")}
    made.said["given tokens"] = "\n".join(tokens.values())
    for role, token in tokens.items():
        api(made, role, token)
    console(made, tokens["admin"])
    refusals(made)
    command_line(made, tokens["admin"])
    made.heard("metrics", made.http.get("/metrics"))
    for path in ("/health/ready", "/schema/openapi.json", "/feed", "/nothing"):
        made.heard(path, made.http.get(path))


def token_of(made: Secretive, role: str) -> str:
    local = made.process.web.local_token  # type: ignore[union-attr]
    told = {"name": f"a-{role}", "role": role, "reason": "test"}
    answer = made.http.post("/api/v1/tokens", json=told, headers=bearer(local))
    assert answer.status_code in {200, 201}, answer.text
    return str(answer.json()["token"])


def bearer(token: str) -> dict[str, str]:
    return {"authorization": f"Bearer {token}"}


LISTS = (
    "files", "source-events", "deliveries", "jobs", "messages", "dead-letters", "destinations",
    "sources", "recipes", "steps", "stats", "status", "alerts", "audit", "secrets", "tokens",
    "log?limit=200", "feed/erp",
)  # fmt: skip


def api(made: Secretive, role: str, token: str) -> None:
    """All lists, each of their rows, and the orders that a role may give."""
    for path in LISTS:
        answer = made.http.get(f"/api/v1/{path}", headers=bearer(token))
        made.heard(f"api {role} {path}", answer)
        document = answer.json()
        for row in document.get("items", []) if isinstance(document, dict) else document:
            name = row.get("id") if isinstance(row, dict) else None
            if name and path in {"files", "deliveries", "jobs", "messages"}:
                one = made.http.get(f"/api/v1/{path}/{name}", headers=bearer(token))
                made.heard(f"api {role} {path}/{name}", one)
    for order in ("dead-letters/retry", "destinations/erp/test", "destinations/via/test"):
        told = {"reason": "a test", "filter": {}, "dry_run": True}
        answer = made.http.post(f"/api/v1/{order}", json=told, headers=bearer(token))
        made.heard(f"api {role} {order}", answer)


def console(made: Secretive, token: str) -> None:
    """Every page that a link of another page leads to."""
    form = {"token": token, "next": "/console/"}
    made.heard("console sign-in", made.http.post("/console/sign-in", data=form))
    made.said["given cookies"] = "\n".join(made.http.cookies.values())
    waiting, seen = ["/console/"], set()
    while waiting:
        path = waiting.pop()
        if path in seen:
            continue
        seen.add(path)
        page = made.heard(f"page {path}", made.http.get(path))
        links = re.findall(r'href="(/console[^"#?]*)"', page.text)
        kept = [link for link in links if not re.search("static|theme|language|artifacts", link)]
        waiting += kept if "html" in page.headers.get("content-type", "") else []
    assert len(seen) > 15, seen
    made.http.cookies.clear()


def refusals(made: Secretive) -> None:
    wrong = canary("badtoken")
    asked = (
        made.http.get("/api/v1/files", headers=bearer(wrong)),
        made.http.get(f"/api/v1/files?token={wrong}"),
        made.http.post("/console/sign-in", data={"token": canary("badsignin"), "next": "/"}),
        made.http.get("/api/v1/artifacts/art_x", headers=bearer(wrong)),
    )
    for number, answer in enumerate(asked):
        made.heard(f"refusal {number}", answer)


# The others show what the lists of the API hold.
COMMANDS = ("status", "show good", "show bad", "show dead", "log", "deliveries", "dead")


def command_line(made: Secretive, token: str) -> None:
    for line in COMMANDS:
        run_in_process(made, line, "--url", made.url, LAUFZETTEL_TOKEN=token)
    run_in_process(made, "files", "--url", made.url, LAUFZETTEL_TOKEN=canary("badtoken"))
    run_in_process(made, "check --json")
    path = made.folder / "slip"
    for form in ("json", "html"):
        run_in_process(
            made, f"slip export good --to {path}.{form}", "--url", made.url, LAUFZETTEL_TOKEN=token
        )


def run_in_process(made: Secretive, line: str, *more: str, **environ: str) -> None:
    path = str(made.folder / "laufzettel.toml")
    clean = {"LAUFZETTEL_TOKEN": None, "LAUFZETTEL_CONFIG": None, "COLUMNS": "220"}
    words = ["-c", path, *line.split(), *more]
    ended = CliRunner().invoke(app, words, env=clean | environ)
    made.said[f"command {line}"] = ended.stdout + ended.stderr + repr(ended.exception)


def afterwards(made: Secretive) -> None:
    """What lies on the disk when nothing runs any more."""
    run_in_process(made, f"backup {made.folder}/all.backup")
    run_in_process(made, "verify")
    run_in_process(made, "replay")
    made.said["backup"] = backed_up(made.folder / "all.backup")
    files = [p for p in made.folder.iterdir() if p.name.startswith("store.db")]
    made.said["database"] = "".join(p.read_bytes().decode("latin-1") for p in files)
    notes = [p for p in (made.folder / "artifacts").rglob("*") if p.is_file()]
    made.said["artifacts"] = "".join(
        p.read_bytes().decode("latin-1") for p in notes if b"you sent" not in p.read_bytes()
    )
    for form in ("json", "html"):
        made.said[f"slip.{form}"] = (made.folder / f"slip.{form}").read_text()


def backed_up(path: Path) -> str:
    found = []
    with tarfile.open(path) as tar:
        for member in tar:
            data = tar.extractfile(member).read()  # type: ignore[union-attr]
            packed = member.name.startswith("tables/")
            found.append(gzip.decompress(data) if packed else data)
    return b"".join(found).decode("latin-1")


# -- the search -----------------------------------------------------------------------------------


def shapes(secret: str) -> Iterator[str]:
    """A secret as it may be written somewhere."""
    raw = secret.encode()
    yield secret
    yield quote(secret, safe="")
    yield raw.hex()
    # Inside other base64 a text stands at one of three offsets; its middle is then always there.
    for pad in range(3):
        inner = base64.b64encode(b"\0" * pad + raw).decode()
        yield inner[4:-4] if len(inner) > 24 else inner


def found(said: dict[str, str], secret: str) -> set[str]:
    """The surfaces on which a secret is to be seen."""
    wanted = set(shapes(secret))
    seen = {name for name, text in said.items() if any(shape in text for shape in wanted)}
    return seen - {"the wire"}


def all_secrets() -> dict[str, str]:
    keys = {name: value.partition("_")[2] for name, value in KEYS.items() if "canary" not in value}
    return {place: canary(place) for place in PLACES} | keys


@pytest.mark.req("F7", "A15")
def test_the_run_reached_every_surface(said: dict[str, str]) -> None:
    for surface in SURFACES:
        assert len(said[surface]) > 200, surface
    assert "good.txt" in said["slip.html"]
    assert {"rejected", "conflict"} <= set(
        re.findall(r'"verdict":"(\w+)"', said["api admin deliveries"])
    )
    assert "dead" in said["api admin jobs"]
    assert "dead" in said["api admin messages"]
    assert len(said) > 120, sorted(said)
    wire = {"the wire": said["the wire"]}
    unused = {p for p in USED if not any(s in wire["the wire"] for s in shapes(canary(p)))}
    assert unused == set()


@pytest.mark.req("F7", "A15", "B8")
@pytest.mark.parametrize("place", sorted(all_secrets()))
def test_a_canary_is_found_nowhere(said: dict[str, str], place: str) -> None:
    assert found(said, all_secrets()[place]) <= MAY_LIE_IN.get(place, set())


@pytest.mark.req("F7")
def test_tokens_and_session_cookies_are_seen_by_those_alone_who_were_given_them(
    said: dict[str, str],
) -> None:
    given = (*said["given tokens"].split(), *said["given cookies"].split())
    assert len(given) >= 3
    for secret in given:
        assert found(said, secret) <= {"given tokens", "given cookies"}, secret[:6]


@pytest.mark.req("F7")
def test_no_signature_is_seen_whole(said: dict[str, str]) -> None:
    everything = "\n".join(text for name, text in said.items() if name != "the wire")
    assert re.findall(r"v1a?,[A-Za-z0-9+/]{43,}={0,2}", everything) == []


@pytest.mark.req("F7", "A15")
@pytest.mark.parametrize(
    "place",
    [
        'database = "env:URL"',
        'database = "sqlite:///store.db"\nbroker = "env:URL"',
    ],
)
def test_the_password_in_an_address_that_nobody_answers_at_is_not_said(
    tmp_path: Path, place: str
) -> None:
    password, port = canary("address"), closed_port()
    scheme = "redis" if "broker" in place else "postgresql"
    url = f"{scheme}://user:{password}@127.0.0.1:{port}/1?application_name={password}"
    (tmp_path / "laufzettel.toml").write_text(f"[laufzettel]\nlisten = '127.0.0.1:0'\n{place}\n")
    told = {}
    # With a broker that is away run would start, and wait for it.
    others = () if "broker" in place else ("migrate", "run")
    for line in ("check --connect", *others):
        ended = laufzettel(*line.split(), folder=tmp_path, URL=url)
        told[line] = ended.stdout + ended.stderr
    assert "127.0.0.1" in told["check --connect"]
    assert found(told, password) == set()

from __future__ import annotations

import base64
import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from app.cli import app
from domain import signatures
from domain.schemes import STANDARD_SCHEME, Key, Request, load_key
from tests.vectors import signature_vectors as vectors
from tests.vectors.signature_vectors import Vector

NOW = 1_796_065_200
SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
READY = vectors.signatures()


def explain(*arguments: str, given: str, environ: dict[str, str] | None = None) -> Result:
    return CliRunner().invoke(app, ["explain", *arguments], input=given, env=environ or {})


def explained(*arguments: str, given: str, environ: dict[str, str] | None = None) -> Any:
    result = explain(*arguments, "--json", given=given, environ=environ)
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


def record(vector: Vector) -> str:
    names = ("url", "headers", "body_utf8", "body_base64")
    kept = {name: vector[name] for name in names if vector.get(name) is not None}
    return json.dumps({"method": vector["http_method"], **kept})


@pytest.mark.req("A1")
@pytest.mark.parametrize("vector", READY, ids=lambda v: v["id"])
def test_every_published_request_is_explained_with_its_verdict(vector: Vector) -> None:
    settings = vectors.settings(vector)
    secrets = settings.secrets or (vector["secret"],)
    environ = {f"GIVEN_{n}": secret for n, secret in enumerate(secrets)}
    options = [part for name in environ for part in ("--secret", f"env:{name}")]
    options += [part for who in settings.allow for part in ("--allow", who)]
    found = explained(
        *("--profile", settings.profile, "--at", str(vector["now"]), *options),
        given=record(vector),
        environ=environ,
    )
    assert (found["verdict"] == "invalid") == (vector["expect"] == "invalid") or vector.get(
        "optional"
    ), found["reason"]
    assert all(secret not in json.dumps(found) for secret in secrets if len(secret) > 8)


def signed(body: dict[str, Any], *, message_id: str = "evt_1", at: int = NOW) -> dict[str, Any]:
    raw = json.dumps(body).encode()
    headers = (("webhook-id", message_id),)
    key = load_key(SECRET, STANDARD_SCHEME)
    assert isinstance(key, Key)
    request = Request("POST", "", "/", "", headers, raw)
    proof = signatures.sign(STANDARD_SCHEME, request, (key,), datetime.fromtimestamp(at, UTC))
    assert isinstance(proof, signatures.Signed)
    told = dict((*headers, *proof.headers))
    return {"headers": told, "body_base64": base64.b64encode(raw).decode()}


VERSION = {
    "type": "file.version.created",
    "timestamp": "2026-11-30T10:00:00Z",
    "data": {
        "file_id": "F-17",
        "version": 3,
        "name": "invoice.pdf",
        "download_url": "https://a.example/f",
    },
}
STANDARD = ("--profile", "standard-webhooks", "--secret", "env:S", "--at", str(NOW))


def test_a_valid_request_shows_the_event_as_it_would_be_mapped() -> None:
    found = explained(*STANDARD, given=json.dumps(signed(VERSION)), environ={"S": SECRET})
    (event,) = found["events"]
    assert found["verdict"] == "valid"
    assert event == {
        "event_id": "evt_1",
        "delivery_id": "evt_1",
        "type": "file.version.created",
        "action": "version",
        "file_id": "F-17",
        "version": "3",
        "order": "3",
        "name": "invoice.pdf",
        "url": "https://a.example/f",
    }


def test_one_request_a_line_gives_one_answer_a_line() -> None:
    given = "\n".join(
        json.dumps(signed(VERSION, message_id=f"evt_{n}", at=NOW + late))
        for n, late in enumerate((0, 412, 0))
    )
    result = explain(*STANDARD, "--json", given=given, environ={"S": SECRET})
    found = [json.loads(line) for line in result.stdout.splitlines()]
    assert [each["verdict"] for each in found] == ["valid", "invalid", "valid"]
    assert "clock off by -412 s" in found[1]["reason"]


def test_a_body_that_breaks_the_contract_is_proven_and_the_field_is_named() -> None:
    body = {"type": "file.version.created", "data": {"version": 3}}
    found = explained(*STANDARD, given=json.dumps(signed(body)), environ={"S": SECRET})
    assert (found["verdict"], found["status"], found["events"]) == ("valid", 422, [])
    assert "/data/file_id" in found["reason"]


@pytest.mark.req("A14")
def test_a_handshake_and_a_ping_are_told_from_events() -> None:
    hello = {"method": "GET", "url": "https://h.example/hooks/d?challenge=abc"}
    options = ("--profile", "dropbox", "--secret", "env:S")
    assert (
        explained(*options, given=json.dumps(hello), environ={"S": "x"})["verdict"] == "handshake"
    )


def test_a_source_of_the_configuration_judges_by_its_own_settings(tmp_path: Path) -> None:
    assert CliRunner().invoke(app, ["init", str(tmp_path)]).exit_code == 0
    config = tmp_path / "laufzettel.toml"
    name = next(
        line.split(".")[1].rstrip("]")
        for line in config.read_text().splitlines()
        if line.startswith("[sources.")
    )
    result = explain(name, "-c", str(config), "--at", str(NOW), given=json.dumps(signed(VERSION)))
    assert result.exit_code == 0
    assert "no signature matches" in result.stdout
    unknown = explain("nobody", "-c", str(config), given="{}")
    assert unknown.exit_code == 2
    assert name in unknown.output


@pytest.mark.req("F5")
@pytest.mark.parametrize("given", ["", "{", "[1]", '{"headers": 3}', '{"body_base64": "%"}'])
def test_input_that_is_no_request_is_wrong_usage_and_says_what_is_wanted(given: str) -> None:
    result = explain(*STANDARD, given=given, environ={"S": SECRET})
    assert result.exit_code == 2
    assert "→" in result.output


@pytest.mark.req("F7")
def test_a_secret_on_the_command_line_is_refused() -> None:
    result = explain("--profile", "github", "--secret", SECRET, given="{}")
    assert result.exit_code == 2
    assert SECRET not in result.output

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from pathlib import Path

import pytest

from app.config import (
    Basic,
    Bearer,
    Config,
    HeaderAuth,
    Invalid,
    OAuth2,
    Secret,
    changed_keys,
    load,
)

SECRET = "whsec_" + "QUJDREVGR0hJSktMTU5PUFFSU1RVVldY"
ENVIRON = {"IN": SECRET, "OUT": SECRET[:-4] + "AAAA", "TOKEN": "t0ken-value"}
SMALL = """
[sources.contracts]
secrets = ["env:IN"]
[sources.contracts.download]
hosts = ["127.0.0.1:9001"]
[recipes.invoices]
sources = ["contracts"]
name = "*.pdf"
transforms = [{ name = "text", use = "text" }, { name = "p", use = "preview", width = 640, required = false }]
notify = ["erp"]
[destinations.erp]
url = "http://127.0.0.1:9002/hooks"
secrets = ["env:OUT"]
private = true
"""


def read(folder: Path, text: str, environ: Mapping[str, str] | None = None) -> Config | Invalid:
    path = folder / "laufzettel.toml"
    path.write_text(text)
    return load(path, ENVIRON if environ is None else environ)


def good(folder: Path, text: str, environ: Mapping[str, str] | None = None) -> Config:
    config = read(folder, text, environ)
    assert isinstance(config, Config), config
    return config


def problems(folder: Path, text: str, environ: Mapping[str, str] | None = None) -> list[str]:
    invalid = read(folder, text, environ)
    assert isinstance(invalid, Invalid)
    return [str(problem) for problem in invalid.problems]


def test_a_small_file_has_the_documented_defaults(tmp_path: Path) -> None:
    config = good(tmp_path, SMALL)
    (source,) = config.sources
    (erp,) = config.destinations
    assert config.installation.database_path == tmp_path / "var/laufzettel.db"
    assert config.installation.artifacts_path == tmp_path / "var/artifacts"
    assert config.installation.public_url == "http://127.0.0.1:8080"
    assert (config.installation.listen_host, config.installation.listen_port) == ("127.0.0.1", 8080)
    assert source.ready.profile.name == "standard-webhooks"
    assert source.ready.schemes[0].clock is not None
    assert source.ready.schemes[0].clock.past_s == 300
    assert (source.max_body_bytes, source.same) == (1_048_576, "bytes")
    assert source.download.max_size_bytes == 5 * 2**30
    assert (source.download.timeout_s, source.download.min_rate_bytes_s) == (60.0, 16_384)
    assert source.download.retry.window_s == 3 * 86_400
    assert source.download.breaker.minimum == 10
    assert (erp.method, erp.timeout_s, erp.concurrency, erp.rate_per_s) == ("POST", 10.0, 8, None)
    assert erp.permanent == (400, 410, 413, 422)
    assert config.retention.payloads_s == 30 * 86_400
    assert config.retention.artifacts_s is None
    assert config.alerts.oldest_waiting_s == 900.0
    assert config.recipes[0].recipe.steps[1].parameters == (("width", 640),)
    assert not config.recipes[0].recipe.steps[1].required


def test_every_key_of_the_contract_is_read(tmp_path: Path) -> None:
    for name in ("ca.pem", "client.pem"):
        (tmp_path / name).write_text("certificate")
    config = good(
        tmp_path,
        """
[laufzettel]
database = "postgresql://user@host/db"
database_direct = "postgresql://user@direct/db"
broker = "redis://localhost/1"
artifacts = "s3://bucket/prefix?endpoint=http://x&region=eu"
listen = "[::1]:9000"
base_url = "https://slips.example.org/"
public_url = "https://hooks.example.org"
trusted_proxies = ["10.0.0.0/8"]
tls = { cert = "ca.pem", key = "client.pem" }
[sources.s]
was = ["old"]
secrets = ["env:IN"]
tolerance = "10m"
max_body = "2 MiB"
same = "json"
volatile = ["/retry"]
order = "sequence"
unknown_fields = "refuse"
unknown_types = "refuse"
repeat_of_failed = "retry"
keep_body = "masked"
private_fields = ["/data/name"]
retention = { payloads = "1d" }
[sources.s.download]
hosts = ["files.example"]
auth = { oauth2 = "client_credentials", token_url = "https://id.example/t", client_id = "me", client_secret = "env:TOKEN", scope = "read" }
max_size = "50 MiB"
timeout = "30s"
min_rate = "1 MiB/s"
total = "1h"
retry = { base = "1s", factor = 3, cap = "1m", window = "1d", attempts = 4 }
breaker = { consecutive = 3, rate = 0.2, min = 4, window = "2m", open = "5s" }
[recipes.r]
was = ["q"]
sources = ["s"]
media_type = "application/*"
type = "file.*"
project = "P-9"
max_size = "1 GiB"
versions = "all"
importance = "high"
transforms = [{ name = "ocr", use = "command", run = ["ocr", "{input}"], timeout = "5m", memory = "1 GiB" }]
notify = ["d"]
retention = { artifacts = "1d" }
[destinations.d]
url = "https://erp.example/hooks"
method = "PUT"
secrets = ["env:OUT"]
auth = "basic me env:TOKEN"
headers = { "X-Company" = "acme" }
ca = "ca.pem"
client_cert = "client.pem"
proxy = "http://proxy:3128"
body = { their_field = "/data/file_id" }
types = ["file.deleted", "file.erased"]
order = "file"
on_dead = "block"
superseded = "send"
unclear = "ask"
ask = "GET https://erp.example/seen/{message_id}"
delivered = { status = ["200", "2xx"], pointer = "/ok", equals = true }
permanent = [400]
reference = "header:X-Id"
timeout = "5s"
concurrency = 2
rate = "120/m"
[alerts]
notify = ["d", "mailto:ops@example.org"]
silent_source = "1h"
oldest_waiting = "1m"
[retention]
messages = "7d"
""",
    )
    source, destination = config.sources[0], config.destinations[0]
    assert config.installation.listen_host == "::1"
    assert config.installation.base_url == "https://slips.example.org"
    assert not config.installation.is_embedded
    assert isinstance(source.download.auth, OAuth2)
    assert source.download.auth.client_secret.reveal() == "t0ken-value"
    assert source.retention == dataclasses.replace(config.retention, payloads_s=86_400.0)
    assert source.download.retry.attempts == 4
    assert isinstance(destination.auth, Basic)
    assert destination.format == "body"
    assert destination.delivered.equals is True
    assert destination.ask == "https://erp.example/seen/{message_id}"
    assert destination.rate_per_s == 2.0
    assert config.recipes[0].retention.artifacts_s == 86_400.0
    assert config.retention.messages_s == 7 * 86_400.0


def test_a_scheme_of_ones_own_is_read(tmp_path: Path) -> None:
    config = good(
        tmp_path,
        """
[sources.apification]
profile = "hmac"
secrets = ["env:TOKEN"]
algorithm = "sha512"
encoding = "base64"
signature = "header:X-Signature"
prefix = "v1="
separator = ","
signed = "demo-webhook-v1\\n{header:X-Delivery}\\n{header:X-Timestamp}\\n{body}"
timestamp = "header:X-Timestamp"
batch = "/value"
[sources.apification.map]
event_id = "/id"
delivery_id = "header:X-Delivery"
type = "/event"
file_id = "/data/file/id"
url = "https://api.example/files/{file_id}/content?v={version}"
[sources.apification.types]
"file.uploaded" = "version"
"subscription.expiring" = "lifecycle"
""",
    )
    (source,) = config.sources
    scheme = source.ready.schemes[0]
    assert scheme.places == ("header:X-Signature",)
    assert (scheme.hash, scheme.encoding, scheme.prefix) == ("sha512", "base64", "v1=")
    assert scheme.signed.startswith("demo-webhook-v1\n{header:X-Delivery}\n")
    assert source.ready.types["file.uploaded"] == "version"
    assert source.ready.types["subscription.expiring"] == "lifecycle"
    assert source.ready.batch == "/value"
    assert source.ready.mapping.url == "https://api.example/files/{file_id}/content?v={version}"


def test_an_unknown_key_names_the_nearest(tmp_path: Path) -> None:
    found = problems(tmp_path, SMALL.replace('secrets = ["env:IN"]', 'secret = ["env:IN"]'))
    assert (
        "laufzettel.toml: sources.contracts.secret: is not known → did you mean secrets?" in found
    )


def test_all_that_is_wrong_is_named_at_once(tmp_path: Path) -> None:
    found = problems(tmp_path, SMALL, environ={})
    text = SMALL.replace('notify = ["erp"]', 'notify = ["epr"]').replace("[recipes.", "[recipe.")
    assert len(found) == 2
    assert len(problems(tmp_path, text, environ={})) == 3


@pytest.mark.req("A15")
@pytest.mark.parametrize("environ", [{}, {"IN": ""}])
def test_a_source_without_its_secret_is_refused(tmp_path: Path, environ: dict[str, str]) -> None:
    (problem,) = problems(tmp_path, '[sources.s]\nsecrets = ["env:IN"]\n', environ)
    assert problem.startswith("laufzettel.toml: sources.s.secrets: the environment variable IN is ")
    assert problem.endswith("→ set IN in the environment or in the .env beside the file")
    assert "secrets" in problems(tmp_path, "[sources.s]\n")[0]
    assert "secrets" in problems(tmp_path, "[sources.s]\nsecrets = []\n")[0]


def test_the_environment_wins_over_the_file_beside_it(tmp_path: Path) -> None:
    beside = tmp_path / ".env"
    beside.write_text(f"# secrets\nexport IN='{SECRET}'\nOUT={SECRET} # ours\nTOKEN=beside\n")
    beside.chmod(0o600)
    text = SMALL.replace("private", 'auth = "header X-Key env:TOKEN"\nprivate')
    config = good(tmp_path, text, environ={"TOKEN": "wins"})
    auth = config.destinations[0].auth
    assert isinstance(auth, HeaderAuth)
    assert auth.value.reveal() == "wins"
    assert config.sources[0].secrets[0].reveal() == SECRET
    assert config.notes == ()


def test_a_secret_file_that_others_can_read_is_warned_of(tmp_path: Path) -> None:
    (tmp_path / ".env").write_text(f"IN={SECRET}\n")
    (tmp_path / ".env").chmod(0o644)
    assert [note.mend for note in good(tmp_path, SMALL).notes] == ["chmod 600 .env"]


def test_a_line_that_cannot_be_read_is_named_without_its_text(tmp_path: Path) -> None:
    (tmp_path / ".env").write_text("A=1\nnonsense t0ken\n")
    (problem,) = problems(tmp_path, SMALL)
    assert problem == ".env: line 2: cannot be read → NAME=value"


def test_a_value_may_come_from_a_file(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text(f"{SECRET}\n")
    config = good(tmp_path, SMALL.replace("env:IN", "file:secret"), {"OUT": SECRET})
    assert config.sources[0].secrets == (Secret("file:secret", SECRET),)
    assert "cannot be read" in problems(tmp_path, SMALL.replace("env:IN", "file:absent"))[0]


def test_any_text_may_be_a_reference(tmp_path: Path) -> None:
    text = SMALL + '[laufzettel]\ndatabase = "env:DATABASE"\n'
    url = "postgresql://me:hidden@db.example/slips?sslmode=require"
    config = good(tmp_path, text, {**ENVIRON, "DATABASE": url})
    assert config.installation.database.reveal() == url
    assert config.installation.database.shown == "postgresql://db.example/slips"
    assert "hidden" not in repr(config)


@pytest.mark.req("F7")
def test_no_secret_is_in_a_representation(tmp_path: Path) -> None:
    text = SMALL.replace("private", 'auth = "bearer env:TOKEN"\nprivate')
    config = good(tmp_path, text)
    assert isinstance(config.destinations[0].auth, Bearer)
    for value in ENVIRON.values():
        assert value not in repr(config)
        assert value not in str(config.sources[0].secrets[0])


def test_references_of_a_step_are_not_pinned_with_the_recipe(tmp_path: Path) -> None:
    text = SMALL.replace('use = "text" }', 'use = "http", auth = "bearer env:TOKEN" }')
    config = good(tmp_path, text)
    assert config.recipes[0].recipe.steps[0].parameters == (("auth", "bearer env:TOKEN"),)
    auth = config.step_auth["bearer env:TOKEN"]
    assert isinstance(auth, Bearer)
    assert auth.token.reveal() == "t0ken-value"
    assert "t0ken-value" not in repr(config)


def test_changed_keys_are_named_without_values(tmp_path: Path) -> None:
    before = good(tmp_path, SMALL)
    again = good(tmp_path, "# a comment\n" + SMALL)
    after = good(
        tmp_path, SMALL.replace("9002", "9003").replace("private =", "order = 'file'\nprivate =")
    )
    assert again.digest == before.digest
    assert changed_keys(before.fingerprints, again.fingerprints) == ()
    assert after.digest != before.digest
    assert changed_keys(before.fingerprints, after.fingerprints) == (
        "destinations.erp.order",
        "destinations.erp.url",
    )


def test_a_file_that_is_absent_or_no_toml_says_what_to_do(tmp_path: Path) -> None:
    absent = load(tmp_path / "laufzettel.toml", {})
    assert isinstance(absent, Invalid)
    assert "laufzettel init" in absent.problems[0].mend
    assert "is not TOML" in problems(tmp_path, "[sources")[0]

from __future__ import annotations

import json
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from app.cli.first_files import write_first_files
from app.config import Config, load
from domain import profiles
from tests.commands import ROOT, START, laufzettel


@pytest.mark.parametrize("profile", ["standard-webhooks", "hmac"])
def test_what_init_writes_passes_check(tmp_path: Path, profile: str) -> None:
    begun = laufzettel("init", "slips", "--source", profile, folder=tmp_path)
    assert begun.returncode == 0, begun.stderr
    assert begun.stdout.rstrip().splitlines()[-1].startswith("  laufzettel send ")
    checked = laufzettel("check", folder=tmp_path / "slips")
    assert (checked.returncode, checked.stderr) == (0, "")
    assert f"{profile}, 1 secret" in checked.stdout


@pytest.mark.parametrize("profile", profiles.names())
def test_the_first_files_are_sound_for_every_profile(tmp_path: Path, profile: str) -> None:
    taken = write_first_files(tmp_path, profile=profile, destination="http://127.0.0.1:1/")
    config = load(tmp_path / "laufzettel.toml", {})
    assert taken == ""
    assert isinstance(config, Config), config
    assert config.sources[0].ready.profile.name == profile


def test_fresh_secrets_are_for_this_user_alone(tmp_path: Path) -> None:
    for name in ("a", "b"):
        laufzettel("init", name, folder=tmp_path)
    texts = [(tmp_path / name / ".env").read_text() for name in ("a", "b")]
    secrets = {line.partition("=")[2] for text in texts for line in text.splitlines()[1:]}
    assert len(secrets) == 4
    assert stat.S_IMODE((tmp_path / "a/.env").stat().st_mode) == 0o600
    assert not any(secret in (tmp_path / "a/laufzettel.toml").read_text() for secret in secrets)


@pytest.mark.parametrize("name", ["laufzettel.toml", ".env"])
def test_init_never_overwrites(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text("mine")
    refused = laufzettel("init", folder=tmp_path)
    assert refused.returncode == 2
    assert f"error: {name} exists" in refused.stderr
    assert [path.name for path in tmp_path.iterdir()] == [name]
    assert (tmp_path / name).read_text() == "mine"


def test_init_names_the_profile_that_was_meant(tmp_path: Path) -> None:
    refused = laufzettel("init", "--source", "standard-webhook", folder=tmp_path)
    assert refused.returncode == 2
    assert "did you mean standard-webhooks?" in refused.stderr


def test_a_destination_elsewhere_asks_for_a_base_url(tmp_path: Path) -> None:
    begun = laufzettel("init", "--destination", "https://erp.example/in", folder=tmp_path)
    assert "base_url" in begun.stdout
    checked = laufzettel("check", folder=tmp_path)
    assert checked.returncode == 1
    assert checked.stderr.startswith("error: laufzettel.toml: laufzettel.base_url: is loopback")


@pytest.mark.req("A15")
@pytest.mark.parametrize("value", ["absent", "empty"])
def test_a_source_without_its_secret_ends_with_status_2(tmp_path: Path, value: str) -> None:
    laufzettel("init", folder=tmp_path)
    (tmp_path / ".env").write_text("" if value == "absent" else "INBOX_SECRET=\n")
    checked = laufzettel("check", folder=tmp_path)
    assert checked.returncode == 2
    first = checked.stderr.splitlines()[0]
    assert first.startswith("error: laufzettel.toml: sources.inbox.secrets: ")
    assert " → set INBOX_SECRET in the environment" in first


def test_the_configuration_may_be_named_before_or_after_or_by_the_environment(
    tmp_path: Path,
) -> None:
    laufzettel("init", "slips", folder=tmp_path)
    path = "slips/laufzettel.toml"
    runs = [
        laufzettel("-c", path, "check", folder=tmp_path),
        laufzettel("check", "--config", path, folder=tmp_path),
        laufzettel("check", folder=tmp_path, LAUFZETTEL_CONFIG=path),
    ]
    assert [run.returncode for run in runs] == [0, 0, 0], [run.stderr for run in runs]
    assert laufzettel("check", folder=tmp_path).returncode == 2


def test_findings_are_readable_by_scripts(tmp_path: Path) -> None:
    laufzettel("init", folder=tmp_path)
    (tmp_path / ".env").chmod(0o644)
    checked = laufzettel("check", "--json", folder=tmp_path)
    assert checked.returncode == 0
    (finding,) = json.loads(checked.stdout)["findings"]
    assert (finding["level"], finding["file"], finding["mend"]) == (
        "warning",
        ".env",
        "chmod 600 .env",
    )


def test_a_step_whose_program_is_missing_is_an_error(tmp_path: Path) -> None:
    laufzettel("init", folder=tmp_path)
    path = tmp_path / "laufzettel.toml"
    step = '{ name = "ocr", use = "command", run = ["no-such-program"] }'
    text = path.read_text().replace('{ name = "checksum", use = "checksum" }', step)
    path.write_text(text)
    checked = laufzettel("check", folder=tmp_path)
    assert checked.returncode == 1
    assert "recipes.documents.transforms[0]: there is no program no-such-program" in checked.stderr


def test_wrong_usage_ends_with_status_2(tmp_path: Path) -> None:
    assert laufzettel("chekc", folder=tmp_path).returncode == 2
    assert laufzettel("check", "--jsom", folder=tmp_path).returncode == 2


def test_help_imports_nothing_heavy(tmp_path: Path) -> None:
    probe = (
        "import sys, atexit; atexit.register(lambda: print(sorted(sys.modules), file=sys.stderr));"
        + START
    )
    command = [sys.executable, "-c", probe, "--help"]
    run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60, check=False)
    assert run.returncode == 0
    heavy = ("litestar", "sqlalchemy", "dramatiq", "httpx", "rich", "pydantic", "app.config")
    assert [name for name in heavy if f"'{name}'" in run.stderr] == []


def test_a_step_that_does_not_exist_is_an_error(tmp_path: Path) -> None:
    laufzettel("init", folder=tmp_path)
    path = tmp_path / "laufzettel.toml"
    path.write_text(path.read_text().replace('use = "checksum"', 'use = "chekcsum"'))
    checked = laufzettel("check", folder=tmp_path)
    assert checked.returncode == 1
    assert "recipes.documents.transforms[0]: use: no step is called 'chekcsum'" in checked.stderr

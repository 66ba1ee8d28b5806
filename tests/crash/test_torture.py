"""``torture`` on a configuration of one's own: what it kills, what it spares, what it finds."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from threading import Event

import pytest

from app.cli.demo.journal import Journal
from app.cli.torture.judge import Verdict, judged
from app.cli.torture.outside import UnplayableError
from app.cli.torture.run import Run, Wanted
from app.cli.torture.trial import Trial
from app.config import Config, load
from app.points import POINTS
from tests.commands import laufzettel
from tests.crash.zygotes import SECRET, Zygote
from tests.servers import Server, answering, serving

# Everything that a scratch area must not reach stands in it.
SETTINGS = """
[laufzettel]
database = "sqlite:///real/store.db"
broker = "redis://127.0.0.1:1"
artifacts = "file:real/artifacts"
listen = "127.0.0.1:1"
base_url = "http://127.0.0.1:1"
[sources.contracts]
secrets = ["env:SECRET"]
[sources.contracts.download]
hosts = ["{real}"]
auth = "bearer env:TOKEN"
[sources.own]
profile = "hmac"
secrets = ["env:OWN_SECRET"]
signature = "header:X-Signature"
signed = "{{header:X-Timestamp}}.{{body}}"
timestamp = "header:X-Timestamp"
[sources.own.map]
event_id = "/id"
type = "/event"
file_id = "/file/id"
version = "/file/version"
name = "/file/name"
url = "https://api.example/files/{{file_id}}/content?v={{version}}"
[sources.own.types]
"file.up" = "version"
[sources.own.download]
hosts = ["api.example"]
[sources.foreign]
profile = "github"
secrets = ["env:OWN_SECRET"]
[recipes.pdf]
sources = ["contracts", "own"]
name = "in?oice-*.pdf"
transforms = [{{ name = "sum", use = "checksum" }}]
notify = ["erp", "crm"]
[recipes.rest]
sources = ["own", "foreign"]
transforms = [{{ name = "asked", use = "http", url = "http://{real}/step", private = true }}]
notify = ["crm", "archive"]
[destinations.erp]
url = "http://{real}/erp"
private = true
secrets = ["env:SECRET"]
delivered = {{ status = ["201"], pointer = "/ok", equals = true }}
reference = "/id"
unclear = "ask"
ask = "http://{real}/has/{{message_id}}"
[destinations.crm]
url = "http://{real}/crm"
private = true
format = "cloudevents"
order = "file"
secrets = ["env:SECRET"]
auth = {{ oauth2 = "client_credentials", token_url = "http://{real}/token", client_id = "me", client_secret = "env:TOKEN" }}
[destinations.archive]
url = "http://{real}/archive"
private = true
method = "PUT"
body = {{ their_file = "/data/file_id", their_version = "/data/version" }}
"""
ENVIRON = {"SECRET": SECRET, "OWN_SECRET": "s" * 32, "TOKEN": "t" * 32}
# The first that are troubled in all the ways there are; the whole matrix is for `make crash`.
QUICK = 45


def configured(folder: Path, real: str = "127.0.0.1:1", settings: str = SETTINGS) -> Config:
    path, dot_env = folder / "laufzettel.toml", folder / ".env"
    path.write_text(settings.replace("{real}", real).replace("{{", "{").replace("}}", "}"))
    dot_env.touch(mode=0o600)
    dot_env.write_text("".join(f"{name}={value}\n" for name, value in ENVIRON.items()))
    config = load(path, {})
    assert isinstance(config, Config), config
    return config


@dataclass(frozen=True)
class Played:
    """A run of one schedule, and what is left of it."""

    run: Run
    calm: Verdict
    last: Trial
    real: Server
    home: Path


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory, zygote: Zygote) -> Iterator[Played]:
    home, scratch = tmp_path_factory.mktemp("home"), tmp_path_factory.mktemp("scratch")
    with serving(answering(500)) as real:
        config = configured(home, real.host)
        run = Run(config, scratch, Wanted(3, None, QUICK), Event(), zygote)
        faults = [fault for step in run.steps() for fault in step.faults]
        assert faults == []
        assert run.calm is not None
        yield Played(run, run.calm[1], run.calm[0], real, home)


@pytest.mark.req("A9", "D1", "E2", "F11")
@pytest.mark.timeout(300)
def test_it_tortures_a_configuration_and_reaches_nothing_real(played: Played) -> None:
    report = played.run.report
    assert (report.lost, report.doubled, report.wrong, report.failures) == (0, 0, 0, [])
    assert (report.schedules, report.seed) == (1, 3)
    assert report.kills > 0
    assert report.of > len(report.points) ** 2
    assert {"notify.ask.after", "download.body.begun", "ledger.commit.after"} <= {*report.points}
    assert {*report.points} < {*POINTS}
    assert any("foreign" in note and "github" in note for note in report.stand_ins)
    assert played.real.requests == []
    assert sorted(path.name for path in played.home.iterdir()) == [".env", "laufzettel.toml"]


def test_every_recipe_and_every_destination_has_its_part_in_it(played: Played) -> None:
    told = {(destination, source) for destination, source, _, _ in played.calm.heard}
    assert told == {
        *(("erp", s) for s in ("contracts", "own")),
        *(("crm", s) for s in ("contracts", "own", "foreign")),
        *(("archive", s) for s in ("own", "foreign")),
    }


# -- what the judge finds --------------------------------------------------------------------------


@pytest.fixture
def tampered(played: Played, tmp_path: Path) -> Trial:
    """The calm trial once more, to be changed at will."""
    folder = tmp_path / "trial"
    shutil.copytree(played.last.folder, folder)
    place = replace(
        played.last.config.installation,
        database_path=folder / "store.db",
        artifacts_path=folder / "artifacts",
    )
    config = replace(played.last.config, installation=place)
    outside = type(played.last.outside)(folder, played.last.ground.clock)
    outside.close()
    return replace(played.last, folder=folder, config=config, outside=outside)


def test_a_message_that_never_came_is_lost(tampered: Trial, played: Played) -> None:
    (tampered.folder / "told-erp.jsonl").write_text("")
    verdict = judged(tampered, played.calm.heard)
    assert len(verdict.lost) == len([key for key in played.calm.heard if key[0] == "erp"]) // 2
    assert (verdict.doubled, verdict.wrong) == ((), ())


def test_a_second_id_for_one_matter_is_doubled(tampered: Trial, played: Played) -> None:
    path = tampered.folder / "told-crm.jsonl"
    entry = Journal(path).entries()[0]
    others = ["art_other" for _ in entry["artifact_ids"]]
    Journal(path).write({**entry, "message_id": "msg_other", "artifact_ids": others})
    doubled = judged(tampered, played.calm.heard).doubled
    assert any("told under two ids" in fault for fault in doubled)
    assert any("made twice" in fault for fault in doubled)


def test_other_bytes_under_one_id_and_a_second_receipt_are_doubled(
    tampered: Trial, played: Played
) -> None:
    told, source = tampered.folder / "told-archive.jsonl", tampered.folder / "source-own.jsonl"
    Journal(told).write({**Journal(told).entries()[0], "body_sha256": "0" * 64})
    answered = next(entry for entry in Journal(source).entries() if entry["receipt"])
    Journal(source).write({**answered, "receipt": "rcp_other"})
    doubled = judged(tampered, played.calm.heard).doubled
    assert [fault.split(" was ")[1] for fault in doubled] == [
        "sent with two bodies",
        "given two receipts",
    ]


def test_a_damaged_artifact_and_a_refusal_are_wrong(tampered: Trial, played: Played) -> None:
    blob = next(p for p in (tampered.folder / "artifacts").rglob("*") if len(p.name) == 64)
    blob.chmod(0o640)
    blob.write_bytes(b"something else")
    source = tampered.folder / "source-own.jsonl"
    Journal(source).write({**Journal(source).entries()[0], "status": 422, "receipt": ""})
    wrong = judged(tampered, played.calm.heard).wrong
    assert any(blob.name in fault or "bytes" in fault for fault in wrong), wrong
    assert any("answered with 422" in fault for fault in wrong)


# -- the command -----------------------------------------------------------------------------------


def test_what_cannot_be_played_is_said_with_its_mend(tmp_path: Path) -> None:
    alone = SETTINGS[: SETTINGS.index("[recipes.pdf]")] + "[destinations.erp]\nurl = 'https://e.de'"
    with pytest.raises(UnplayableError, match="no recipe takes"):
        Run(configured(tmp_path, settings=alone), tmp_path, Wanted(1, 1.0), Event())
    ended = laufzettel("torture", folder=tmp_path)
    assert (ended.returncode, "→" in ended.stderr) == (2, True)
    assert laufzettel("torture", "--for", "soon", folder=tmp_path).returncode == 2


@pytest.mark.timeout(1800)
def test_the_command_says_points_schedules_lost_and_doubled(
    tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    if not request.config.getoption("--all-pairs"):
        pytest.skip("ten minutes: for make crash; its parts are tested above")
    configured(tmp_path)
    ended = laufzettel("torture", "--for", "10m", "--json", folder=tmp_path)
    report = json.loads(ended.stdout)
    assert (ended.returncode, report["failures"]) == (0, []), ended.stderr
    assert (report["lost"], report["doubled"], report["wrong"]) == (0, 0, 0)
    assert set(report["killed_at"]) == set(report["points"])

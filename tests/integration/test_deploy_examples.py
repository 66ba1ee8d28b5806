"""The examples for deployment: valid for the tool of their kind, and true of this program."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from app.cli import crew
from app.compose import GRACE_S
from app.config import Config, load
from app.web import health
from tests.stores import missing

FOLDER = Path(__file__).parents[2] / "docs/how-to/deploy"
UNITS = tuple(sorted(path.name for path in FOLDER.glob("*.service")))
# What a stop takes at most (``app.compose``), with room.
STOP_S = GRACE_S + 7 + 1
USER = 10001
ENVIRON = {
    "DATABASE": "postgresql://laufzettel@postgres/laufzettel",
    "BROKER": "redis://valkey:6379/0",
    "ARTIFACTS": "s3://bucket/here?region=eu-central-1",
}


def judged(program: str, *arguments: str) -> str:
    """What a tool says; fails if it finds fault, and is skipped where a laptop lacks it."""
    beside = Path(sys.executable).with_name(program)
    found = str(beside) if beside.exists() else shutil.which(program)
    if found is None:
        missing(f"{program} is not installed")
    ended = subprocess.run([str(found), *arguments], capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    return ended.stdout + ended.stderr


def manifests() -> list[dict[str, Any]]:
    return list(yaml.safe_load_all((FOLDER / "kubernetes.yaml").read_text()))


def pods() -> Iterator[dict[str, Any]]:
    """The specification of each pod."""
    for each in manifests():
        if each["kind"] in {"Job", "Deployment"}:
            yield each["spec"]["template"]["spec"]


def services() -> dict[str, dict[str, Any]]:
    whole: dict[str, Any] = yaml.safe_load((FOLDER / "compose.yaml").read_text())
    found: dict[str, dict[str, Any]] = whole["services"]
    return found


def configured(folder: Path, text: str) -> Config:
    (folder / "laufzettel.toml").write_text(text)
    config = load(folder / "laufzettel.toml", ENVIRON)
    assert isinstance(config, Config), config
    return config


@pytest.mark.req("F1")
def test_every_example_has_the_same_configuration_and_it_is_sound(tmp_path: Path) -> None:
    text = (FOLDER / "laufzettel.toml").read_text()
    assert not configured(tmp_path, text).installation.is_embedded
    mapped = manifests()[0]["data"]["laufzettel.toml"]
    lines = [line for line in text.splitlines() if not line.startswith("#")]
    assert mapped.splitlines() == lines


@pytest.mark.req("F1")
def test_the_compose_file_is_one_and_gives_nothing_away() -> None:
    judged("check-jsonschema", "--builtin-schema", "vendor.compose-spec", f"{FOLDER}/compose.yaml")
    for name in ("migrate", "web", "worker"):
        each = services()[name]
        assert each["read_only"], name
        assert each["user"] == f"{USER}:{USER}"
        assert each["cap_drop"] == ["ALL"]
        assert each["security_opt"] == ["no-new-privileges:true"]
        assert float(each["stop_grace_period"].removesuffix("s")) > STOP_S
    (probe,) = [text for text in services()["web"]["healthcheck"]["test"] if "http:" in text]
    assert f":8080{path_of(health.ready)}'" in probe
    assert [port.split(":")[0] for port in services()["web"]["ports"]] == ["127.0.0.1"]


@pytest.mark.req("F1")
def test_the_manifests_are_valid_and_their_pods_may_do_little() -> None:
    judged("kubernetes-validate", "--strict", f"{FOLDER}/kubernetes.yaml")
    assert len(list(pods())) == 3
    for pod in pods():
        assert pod["securityContext"]["runAsNonRoot"]
        assert pod["securityContext"]["runAsUser"] == USER
        assert not pod["automountServiceAccountToken"]
        for container in pod["containers"]:
            allowed = container["securityContext"]
            assert allowed["readOnlyRootFilesystem"]
            assert not allowed["allowPrivilegeEscalation"]
            assert allowed["capabilities"] == {"drop": ["ALL"]}
            assert container["resources"]["limits"]["memory"]


@pytest.mark.req("F8", "F10")
def test_probes_ask_what_there_is_and_a_stop_has_its_time() -> None:
    web, worker = [pod for pod in pods() if "terminationGracePeriodSeconds" in pod]
    (container,) = web["containers"]
    asked = {
        name: container[f"{name}Probe"]["httpGet"]["path"] for name in ("liveness", "readiness")
    }
    assert asked == {"liveness": path_of(health.live), "readiness": path_of(health.ready)}
    waits_s = container["lifecycle"]["preStop"]["sleep"]["seconds"]
    assert web["terminationGracePeriodSeconds"] > STOP_S + waits_s
    assert worker["terminationGracePeriodSeconds"] > STOP_S


@pytest.mark.req("F1", "F10")
@pytest.mark.parametrize("name", UNITS)
def test_a_unit_is_valid_exposes_little_and_reloads_one_by_one(tmp_path: Path, name: str) -> None:
    text = (FOLDER / name).read_text()
    # The program is elsewhere on this machine; all else is judged as it stands.
    unit = tmp_path / name
    unit.write_text(text.replace("/opt/laufzettel/bin/laufzettel", "/bin/true"))
    assert judged("systemd-analyze", "verify", str(unit)) == ""
    judged("systemd-analyze", "security", "--offline=true", "--threshold=25", str(unit))
    settings = dict(line.split("=", 1) for line in text.splitlines() if "=" in line[1:])
    assert settings["ExecReload"] == "/bin/kill -HUP $MAINPID"
    assert settings["RestartPreventExitStatus"] == "2"
    assert float(settings["TimeoutStopSec"]) > crew._GRACE_S


def test_the_image_is_without_fault_and_nobody_in_it_is_root() -> None:
    judged("hadolint", f"{FOLDER}/Dockerfile")
    lines = (FOLDER / "Dockerfile").read_text().splitlines()
    assert f"USER {USER}:{USER}" in lines
    assert lines.index(f"USER {USER}:{USER}") < lines.index('ENTRYPOINT ["laufzettel"]')


def path_of(handler: Any) -> str:
    """The path that a handler of the web side answers."""
    (path,) = handler.paths
    return str(path)

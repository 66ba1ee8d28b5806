"""What users rely on is described, and what is described exists."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest
import typer.main

from app.cli import app
from app.config import Config, Invalid, load
from app.points import POINTS
from app.telemetry import LOG_NAMES, METRICS, SPANS
from tests.tidy import tree

REFERENCE = tree.ROOT / "docs/reference"
SECRET = "whsec_QUJDREVGR0hJSktMTU5PUFFSU1RVVldY"
ENVIRON = {
    "CONTRACTS_SECRET": SECRET,
    "CONTRACTS_TOKEN": "x",
    "APIFICATION_SECRET": SECRET[:-4] + "AAAA",
    "ERP_SECRET": SECRET[:-4] + "BBBB",
    "ERP_TOKEN": "x",
    "COLLECTOR_KEY": "x",
}
LOG_CALLS = {"debug", "info", "warning", "error", "exception", "critical"}


def page(name: str) -> str:
    return (REFERENCE / name).read_text(encoding="utf-8")


def example() -> str:
    return "\n".join(re.findall(r"```toml\n(.*?)```", page("configuration.md"), re.DOTALL))


def commands() -> list[str]:
    return sorted(getattr(typer.main.get_command(app), "commands", {}))


@pytest.mark.parametrize("command", commands())
def test_a_command_is_documented(command: str) -> None:
    assert re.search(rf"^## `laufzettel {command}[` ]", page("commands.md"), re.MULTILINE)


def test_the_documented_configuration_can_be_used(tmp_path: Path) -> None:
    (tmp_path / "laufzettel.toml").write_text(example())
    config = load(tmp_path / "laufzettel.toml", ENVIRON)
    assert isinstance(config, Config), config


def test_every_key_is_documented(tmp_path: Path) -> None:
    # A key that no table knows makes each table name all that it knows.
    text = re.sub(r"^(\[.+\].*)$", r"\1\nq0q0q0 = 1", example(), flags=re.MULTILINE)
    (tmp_path / "laufzettel.toml").write_text(text)
    invalid = load(tmp_path / "laufzettel.toml", ENVIRON)
    assert isinstance(invalid, Invalid)
    known = [
        problem.mend.removeprefix("remove it; known keys: ")
        for problem in invalid.problems
        if problem.what == "is not known"
    ]
    keys = {key for line in known for key in line.split(", ")}
    assert len(keys) > 80
    assert {key for key in keys if not re.search(rf"\b{key}\b", page("configuration.md"))} == set()


def test_every_metric_is_documented() -> None:
    text = page("telemetry.md")
    assert {m.name for m in METRICS if f"| `laufzettel_{m.name}` |" not in text} == set()
    assert set(re.findall(r"`laufzettel_(\w+)`", text)) == {m.name for m in METRICS}


def test_every_span_is_declared_and_documented() -> None:
    rows = re.findall(
        r"^\| `(\w+\.\w+)` \| \w+ \| .+? \| (.+) \|$", page("telemetry.md"), re.MULTILINE
    )
    assert dict(rows) == SPANS


def test_every_log_line_is_declared_and_documented() -> None:
    named = {
        text
        for path in tree.modules("app", "jobs")
        for call in tree.calls(path)
        if getattr(call.func, "attr", "") in LOG_CALLS
        and (text := tree.first_text(call))
        and re.fullmatch(r"[a-z_]+(?:\.[a-z_]+)+", text)
    }
    assert named - LOG_NAMES.keys() == set()
    rows = dict(re.findall(r"^\| `([\w.]+)` \| (.+) \|$", page("log-lines.md"), re.MULTILINE))
    assert rows == LOG_NAMES


def test_every_passed_point_is_declared() -> None:
    passed = {
        text
        for path in tree.modules("app", "jobs")
        for call in tree.calls(path)
        if getattr(call.func, "id", getattr(call.func, "attr", "")) == "point"
        and (text := tree.first_text(call))
    }
    assert passed - set(POINTS) == set()


def test_a_link_between_pages_leads_somewhere() -> None:
    broken = [
        (page.name, target)
        for page in tree.tracked()
        if page.suffix == ".md"
        for target in re.findall(r"\]\(([^)#:\s]+)(?:#[^)]*)?\)", page.read_text())
        if not (page.parent / target).exists()
    ]
    assert broken == []


def test_every_decision_is_in_the_list() -> None:
    folder = tree.ROOT / "docs/decisions"
    listed = set(re.findall(r"\((\d{4}-[\w-]+\.md)\)", (folder / "README.md").read_text()))
    assert listed == {path.name for path in folder.glob("[0-9]*.md")}


def test_every_mark_names_a_requirement() -> None:
    known = tomllib.loads((tree.ROOT / "docs/requirements.toml").read_text())
    ids = {ident for rows in known.values() for ident in rows}
    named = {
        text
        for path in tree.modules("tests")
        for call in tree.calls(path)
        if getattr(call.func, "attr", "") == "req" and (text := tree.first_text(call))
    }
    assert named - ids == set()

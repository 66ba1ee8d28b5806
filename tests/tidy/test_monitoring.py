"""Alert rules, their pages and the dashboard: readable by others, and about metrics that exist."""

from __future__ import annotations

import importlib.util
import json
import re
import shlex
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import promql_parser
import pytest
import typer.main
import yaml

from app.cli import app
from tests.tidy import tree

DOCS = tree.ROOT / "docs"
RULES: list[dict[str, Any]] = [
    rule
    for group in yaml.safe_load((DOCS / "monitoring/alerts.yml").read_text())["groups"]
    for rule in group["rules"]
]
DASHBOARD = json.loads((DOCS / "monitoring/dashboard.json").read_text())
PAGES = sorted(page for page in (DOCS / "runbook").glob("*.md") if page.name != "README.md")
ASKED = [rule["expr"] for rule in RULES] + [
    target["expr"].replace("$__rate_interval", "5m")
    for panel in DASHBOARD["panels"]
    for target in panel["targets"]
]
_ENDS = {"counter": ("_total",), "histogram": ("_bucket", "_sum", "_count"), "gauge": ("",)}


def documented() -> dict[str, set[str]]:
    """Every series that is served, with its labels, as the page about metrics has it."""
    text = (DOCS / "reference/telemetry.md").read_text()
    rows = re.findall(r"^\| `(laufzettel_\w+)` \| (\w+) \| (.*?) \|", text, re.MULTILINE)
    return {
        f"{name}{end}": set(re.findall(r"`(\w+)`", labels)) | {"le", "job"}
        for name, kind, labels in rows
        for end in _ENDS[kind]
    }


def parsed(asked: str) -> str:
    """What it means, in one form; raises ``ValueError`` where Prometheus would not take it."""
    return str(promql_parser.parse(asked))


@pytest.mark.req("F8")
@pytest.mark.parametrize("asked", ASKED)
def test_what_prometheus_is_asked_is_about_metrics_that_exist(asked: str) -> None:
    known = documented()
    text = parsed(asked)
    named = set(re.findall(r"\blaufzettel_\w+", text))
    assert named
    assert named - known.keys() == set()
    labels = {label for name in named for label in known[name]}
    by = {x.strip() for group in re.findall(r"\bby \((.*?)\)", text) for x in group.split(",")}
    where = set(re.findall(r"(\w+)=~?\"", text))
    assert (by | where) - labels == set()


def test_a_query_that_cannot_be_read_is_noticed() -> None:
    with pytest.raises(ValueError, match="parenthesis"):
        parsed("sum(rate(x[5m])")


@pytest.mark.req("F8")
def test_each_rule_has_its_page_and_no_page_is_left_over() -> None:
    named = {rule["annotations"]["runbook"] for rule in RULES}
    assert named == {str(page.relative_to(tree.ROOT)) for page in PAGES}
    assert len(named) == len(RULES)
    for rule in RULES:
        text = (tree.ROOT / rule["annotations"]["runbook"]).read_text()
        severity = rule["labels"]["severity"]
        assert text.startswith(f"# {rule['alert']}\n\n*{severity}*")
        assert severity in {"critical", "warning", "info"}
        assert rule["annotations"]["summary"]
        assert {"## Look", "## Do"} <= set(text.splitlines())
        assert f"[{rule['alert']}](" in (DOCS / "runbook/README.md").read_text()


def commands(page: Path) -> Iterator[str]:
    text = page.read_text()
    for block in re.findall(r"```\n(.*?)```", text, re.DOTALL):
        yield from block.splitlines()
    yield from re.findall(r"`(laufzettel [^`]+)`", " ".join(text.split()))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_the_commands_of_a_runbook_page_can_be_typed(page: Path) -> None:
    known = typer.main.get_command(app).commands  # type: ignore[attr-defined]
    found = list(commands(page))
    assert found
    for line in found:
        program, name, *rest = shlex.split(line)
        assert program == "laufzettel"
        known[name].make_context(name, rest)  # raises for what is wrong with it


def test_the_dashboard_is_as_it_was_made(monkeypatch: pytest.MonkeyPatch) -> None:
    spec = importlib.util.spec_from_file_location("make_dashboard", DOCS / "make_dashboard.py")
    assert spec is not None
    assert spec.loader is not None
    made = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, spec.name, made)  # dataclasses look their module up
    spec.loader.exec_module(made)
    page = (DOCS / "monitoring/dashboard.json").read_text()
    assert page == made.page(), "run: python docs/make_dashboard.py"

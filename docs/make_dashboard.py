"""Writes docs/monitoring/dashboard.json: the Grafana dashboard, from the questions it answers."""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

PAGE = Path(__file__).parent / "monitoring/dashboard.json"
SOURCE = {"type": "prometheus", "uid": "${source}"}
_WIDTH, _HEIGHT, _ACROSS = 8, 8, 3


@dataclass(frozen=True, slots=True)
class Panel:
    """One question: its title, what Prometheus is asked, how a line is called, and the unit."""

    title: str
    asked: str
    legend: str
    unit: str = "short"
    kind: str = "timeseries"


def rate(name: str, by: str, where: str = "") -> str:
    """Events a second of a counter."""
    return f"sum by ({by}) (rate(laufzettel_{name}_total{where}[$__rate_interval]))"


def quantile(share: float, name: str, by: str) -> str:
    """A quantile of a histogram of seconds."""
    inner = f"sum by ({by}, le) (rate(laufzettel_{name}_seconds_bucket[$__rate_interval]))"
    return f"histogram_quantile({share}, {inner})"


PANELS = (
    Panel("Dead letters", "max by (kind) (laufzettel_dead_letters)", "{{kind}}", kind="stat"),
    Panel(
        "Destinations cut off",
        "max by (destination) (laufzettel_breaker_open)",
        "{{destination}}",
        kind="stat",
    ),
    Panel("Workers", "max(laufzettel_workers)", "workers", kind="stat"),
    Panel("Deliveries", rate("deliveries", "source, verdict"), "{{source}} {{verdict}}", "cps"),
    Panel("Acceptance, p99", quantile(0.99, "accept", "source"), "{{source}}", "s"),
    Panel(
        "Silent for",
        "max by (source) (laufzettel_source_silent_seconds)",
        "{{source}}",
        "s",
    ),
    Panel("Attempts of jobs", rate("jobs", "kind, outcome"), "{{kind}} {{outcome}}", "cps"),
    Panel("An attempt of a job, p95", quantile(0.95, "job", "kind"), "{{kind}}", "s"),
    Panel("Oldest due work", "max by (kind) (laufzettel_oldest_due_seconds)", "{{kind}}", "s"),
    Panel(
        "Attempts of messages",
        rate("messages", "destination, outcome"),
        "{{destination}} {{outcome}}",
        "cps",
    ),
    Panel("A message, p95", quantile(0.95, "message", "destination"), "{{destination}}", "s"),
    Panel("Due and not begun", "max by (kind) (laufzettel_due)", "{{kind}}"),
    Panel("Unclear", "max by (destination) (laufzettel_unclear)", "{{destination}}"),
    Panel("Claims that never came back", "sum(rate(laufzettel_leases_lapsed_total[5m]))", "lapsed"),
    Panel("Commands", "sum(rate(laufzettel_commands_total[$__rate_interval]))", "a second", "cps"),
    Panel("A commit, p99", quantile(0.99, "commit", "job"), "{{job}}", "s"),
    Panel("Waiting to be stored", "max(laufzettel_commands_waiting)", "commands"),
    Panel("Events without a position", "max(laufzettel_unsequenced)", "events"),
    Panel("Oldest open transaction", "max(laufzettel_frontier_age_seconds)", "age", "s"),
    Panel("Artifacts", "sum(rate(laufzettel_artifact_bytes_total[5m]))", "recorded", "Bps"),
)


def page() -> str:
    """The dashboard as Grafana imports it."""
    dashboard = {
        "title": "Laufzettel",
        "uid": "laufzettel",
        "tags": ["laufzettel"],
        "schemaVersion": 39,
        "time": {"from": "now-6h", "to": "now"},
        "refresh": "30s",
        "templating": {
            "list": [
                {"name": "source", "type": "datasource", "query": "prometheus", "label": "Data"}
            ]
        },
        "panels": [_panel(number, panel) for number, panel in enumerate(PANELS)],
    }
    return json.dumps(dashboard, indent=1) + "\n"


def _panel(number: int, panel: Panel) -> dict[str, Any]:
    row, place = divmod(number, _ACROSS)
    return {
        "id": number + 1,
        "title": panel.title,
        "type": panel.kind,
        "datasource": SOURCE,
        "gridPos": {"h": _HEIGHT, "w": _WIDTH, "x": place * _WIDTH, "y": row * _HEIGHT},
        "fieldConfig": {"defaults": {"unit": panel.unit, "min": 0}, "overrides": []},
        "targets": [
            {
                "refId": "A",
                "datasource": SOURCE,
                "expr": panel.asked,
                "legendFormat": panel.legend,
            }
        ],
    }


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
    sys.stdout.write(f"{PAGE}\n")

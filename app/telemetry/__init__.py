"""What the system says of itself: log lines and metrics, their names in one place."""

from __future__ import annotations

from app.telemetry.logs import configure_logs, log
from app.telemetry.metrics import METRICS, Metric, Metrics
from app.telemetry.names import LOG_NAMES

__all__ = ["LOG_NAMES", "METRICS", "Metric", "Metrics", "configure_logs", "log"]

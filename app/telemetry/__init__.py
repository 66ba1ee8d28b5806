"""What the system says of itself: log lines, metrics and spans, their names in one place."""

from __future__ import annotations

from app.telemetry.logs import configure_logs, is_debug_told, log
from app.telemetry.metrics import METRICS, Metric, Metrics
from app.telemetry.names import LOG_NAMES, SPANS
from app.telemetry.traces import Collector, Span, Traces, TracesMissingError, open_traces

__all__ = [
    "LOG_NAMES",
    "METRICS",
    "SPANS",
    "Collector",
    "Metric",
    "Metrics",
    "Span",
    "Traces",
    "TracesMissingError",
    "configure_logs",
    "is_debug_told",
    "log",
    "open_traces",
]

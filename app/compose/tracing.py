"""Spans as the configuration wants them."""

from __future__ import annotations

from importlib.util import find_spec

from app.config import Config, Problem
from app.telemetry import Collector, Traces, open_traces
from app.telemetry.traces import PACKAGE
from jobs.outbound import fixed_headers

_NEEDED = ("opentelemetry.sdk", "opentelemetry.exporter.otlp.proto.http")


def traces_of(config: Config, *, version: str, instance: str) -> Traces:
    """The spans of one process; none are kept where no collector is configured."""
    plan = config.traces
    if not plan.endpoint:
        return Traces()
    headers = dict(fixed_headers(plan.auth)) if plan.auth else {}
    collector = Collector(plan.endpoint, headers, plan.share)
    return open_traces(collector, version=version, instance=instance)


def traces_missing(config: Config) -> Problem | None:
    """What this machine lacks to send spans to the configured collector."""
    if not config.traces.endpoint or all(map(_is_there, _NEEDED)):
        return None
    what = "is set, and this machine cannot send spans"
    mend = f"install {PACKAGE}, or remove the key"
    return Problem(config.path.name, "traces.endpoint", what, mend)


def _is_there(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except ModuleNotFoundError:
        return False

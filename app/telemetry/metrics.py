"""Every metric of the system, as data: name, kind, labels and meaning."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300)


@dataclass(frozen=True, slots=True)
class Metric:
    """One metric; its full name begins with ``laufzettel_``."""

    name: str
    kind: Literal["counter", "gauge", "seconds"]
    meaning: str
    labels: tuple[str, ...] = ()


METRICS = (
    Metric("deliveries", "counter", "Deliveries by what became of them.", ("source", "verdict")),
    Metric("accept_seconds", "seconds", "From the last byte in to the answer.", ("source",)),
    Metric("commit_seconds", "seconds", "One commit of the Ledger."),
    Metric("commands", "counter", "Commands that the Ledger committed."),
    Metric("commands_waiting", "gauge", "Commands in the Ledger's queue."),
    Metric("jobs", "counter", "Ended attempts of jobs.", ("kind", "outcome")),
    Metric("job_seconds", "seconds", "One attempt of a job.", ("kind",)),
    Metric("messages", "counter", "Ended attempts of messages.", ("destination", "outcome")),
    Metric("message_seconds", "seconds", "One attempt of a message.", ("destination",)),
    Metric("due", "gauge", "Work that is due and not begun.", ("kind",)),
    Metric("oldest_due_seconds", "gauge", "How long the oldest due work waits.", ("kind",)),
    Metric("dead_letters", "gauge", "Jobs and messages that gave up.", ("kind",)),
    Metric("unclear", "gauge", "Messages sent without an answer.", ("destination",)),
    Metric("breaker_open", "gauge", "1 while calls are stopped.", ("destination",)),
    Metric("source_silent_seconds", "gauge", "Since a source's last delivery.", ("source",)),
    Metric("leases_lapsed", "counter", "Claims that never came back."),
    Metric("workers", "gauge", "Worker processes that renewed lately."),
    Metric("unsequenced", "gauge", "Events without a position yet."),
    Metric("frontier_age_seconds", "gauge", "Age of the oldest transaction that may write."),
    Metric("walks", "counter", "Walks along change feeds.", ("source", "outcome")),
    Metric("found_events", "counter", "New events that walks found.", ("source", "by")),
    Metric("artifact_bytes", "counter", "Bytes of artifacts that were made."),
)


class Metrics:
    """The metrics of one process, built once at the edge and passed on."""

    def __init__(self) -> None:
        self._registry = CollectorRegistry()
        self._made = {metric.name: _made(metric, self._registry) for metric in METRICS}
        self._labelled: dict[tuple[str, ...], Counter | Gauge | Histogram] = {}

    def count(self, name: str, amount: float = 1, **labels: str) -> None:
        """Add to a counter."""
        found = self._found(name, labels)
        assert isinstance(found, Counter), name  # noqa: S101 - a wrong kind is a defect
        found.inc(amount)

    def set(self, name: str, value: float, **labels: str) -> None:
        """Set a gauge."""
        found = self._found(name, labels)
        assert isinstance(found, Gauge), name  # noqa: S101 - a wrong kind is a defect
        found.set(value)

    def observe(self, name: str, seconds: float, **labels: str) -> None:
        """Note how long something took."""
        found = self._found(name, labels)
        assert isinstance(found, Histogram), name  # noqa: S101 - a wrong kind is a defect
        found.observe(seconds)

    def page(self) -> bytes:
        """All of them in Prometheus' text form."""
        return generate_latest(self._registry)

    def _found(self, name: str, labels: dict[str, str]) -> Counter | Gauge | Histogram:
        if not labels:
            return self._made[name]
        # By name and value: the library looks every label up anew, under a lock, for each delivery.
        key = (name, *labels, *labels.values())
        found = self._labelled.get(key)
        if found is None:
            found = self._labelled[key] = self._made[name].labels(**labels)
        return found


def _made(metric: Metric, registry: CollectorRegistry) -> Counter | Gauge | Histogram:
    name = f"laufzettel_{metric.name}"
    match metric.kind:
        case "counter":
            return Counter(name, metric.meaning, metric.labels, registry=registry)
        case "gauge":
            return Gauge(name, metric.meaning, metric.labels, registry=registry)
        case "seconds":
            return Histogram(
                name, metric.meaning, metric.labels, registry=registry, buckets=_SECONDS
            )

"""Spans from a webhook to its messages: one trace, over processes, retries and restarts.

The context of a span is the W3C ``traceparent`` text. It is stored with the events that the span
causes, so whoever takes up the work that those ordered goes on with the same trace. OpenTelemetry
is loaded only where a collector is configured.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Literal

Role = Literal["server", "worker", "client"]
Value = str | int | float | bool

PACKAGE = "laufzettel[traces]"
_TIMEOUT_S = 5.0
_PATH = "/v1/traces"


class TracesMissingError(Exception):
    """A collector is configured, and what sends spans to it is not installed."""


@dataclass(frozen=True, slots=True)
class Collector:
    """Where spans are sent by OTLP over HTTP; ``share`` of the traces that begin here are kept."""

    endpoint: str
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    share: float = 1.0


class Span:
    """A stretch of work. One that is not recorded goes by the context that came in."""

    def __init__(self, context: str = "", recorded: Any = None) -> None:
        self.context = context
        self._recorded = recorded

    def note(self, **values: Value) -> None:
        """Add what became known meanwhile."""
        if self._recorded is not None:
            self._recorded.set_attributes(_named(values))

    def fail(self, word: str) -> None:
        """Mark it as failed, with one word of ours: a reason may quote what others said."""
        if self._recorded is not None:
            from opentelemetry.trace import Status, StatusCode

            self._recorded.set_status(Status(StatusCode.ERROR, word))


class Traces:
    """The spans of one process, built once at the edge; without a collector none are kept."""

    def __init__(self, provider: Any = None) -> None:
        self._provider = provider
        self._tracer = provider.get_tracer("laufzettel") if provider else None

    @property
    def is_on(self) -> bool:
        """Whether spans are kept, so that their parents are worth looking up."""
        return self._tracer is not None

    @contextmanager
    def span(self, name: str, role: Role, *, parent: str = "", **values: Value) -> Iterator[Span]:
        """A span around what is done inside; ``parent`` is the context that it belongs to."""
        if self._tracer is None:
            yield Span(parent)
            return
        from opentelemetry.trace import SpanKind

        kinds = {
            "server": SpanKind.SERVER,
            "worker": SpanKind.CONSUMER,
            "client": SpanKind.CLIENT,
        }
        # No context of the thread: two deliveries of one event loop must not see each other's.
        recorded = self._tracer.start_span(
            name, context=_context(parent), kind=kinds[role], attributes=_named(values)
        )
        try:
            yield Span(_told(recorded.get_span_context()), recorded)
        except BaseException as error:
            recorded.set_attribute("laufzettel.error", type(error).__qualname__)
            raise
        finally:
            recorded.end()

    def close(self) -> None:
        """Send what is left, for a few seconds at most."""
        if self._provider is not None:
            self._provider.shutdown()


def open_traces(collector: Collector, *, version: str, instance: str) -> Traces:
    """Traces that go to the collector; raises ``TracesMissingError``."""
    try:
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
        from opentelemetry.sdk.resources import Resource
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import BatchSpanProcessor
        from opentelemetry.sdk.trace.sampling import ParentBased, TraceIdRatioBased
    except ImportError as error:
        raise TracesMissingError(str(error)) from error
    exporter = OTLPSpanExporter(
        endpoint=collector.endpoint.rstrip("/").removesuffix(_PATH) + _PATH,
        headers=dict(collector.headers),
        timeout=_TIMEOUT_S,
    )
    about = {"service.name": "laufzettel", "service.version": version}
    provider = TracerProvider(
        resource=Resource.create({**about, "service.instance.id": instance}),
        # Who began the trace says whether it is kept; a part of a trace helps nobody.
        sampler=ParentBased(TraceIdRatioBased(collector.share)),
        shutdown_on_exit=False,
    )
    provider.add_span_processor(BatchSpanProcessor(exporter, schedule_delay_millis=1000))
    return Traces(provider)


def trace_id_of(context: str) -> str:
    """The trace of a context, "" for none."""
    return context[3:35]


def _context(parent: str) -> Any:
    from opentelemetry.context import Context
    from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

    carrier = {"traceparent": parent} if parent else {}
    return TraceContextTextMapPropagator().extract(carrier, context=Context())


def _told(context: Any) -> str:
    return f"00-{context.trace_id:032x}-{context.span_id:016x}-{int(context.trace_flags):02x}"


def _named(values: Mapping[str, Value]) -> dict[str, Value]:
    return {f"laufzettel.{name}": value for name, value in values.items()}

"""A collector of the tests' own: takes spans by OTLP over HTTP and keeps them."""

from __future__ import annotations

import gzip
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from tests.servers import Received, Server, answering, serving


@dataclass(frozen=True)
class Kept:
    """One span as it was sent."""

    name: str
    trace: str
    id: str
    parent: str
    instance: str
    values: dict[str, Any]

    @property
    def is_failed(self) -> bool:
        return bool(self.values["failed"])


class Collector:
    """What has reached it so far."""

    def __init__(self, server: Server) -> None:
        self.server = server
        self.url = server.url()

    @property
    def spans(self) -> list[Kept]:
        found = [span for request in self.server.requests for span in _spans(request)]
        return sorted(found, key=lambda span: span.values["began"])

    def named(self, name: str) -> list[Kept]:
        return [span for span in self.spans if span.name == name]


@contextmanager
def collecting() -> Iterator[Collector]:
    with serving(answering(200)) as server:
        yield Collector(server)


def _spans(request: Received) -> Iterator[Kept]:
    is_packed = request.header("content-encoding") == "gzip"
    told = ExportTraceServiceRequest.FromString(
        gzip.decompress(request.body) if is_packed else request.body
    )
    for group in told.resource_spans:
        about = _values(group.resource.attributes)
        for scope in group.scope_spans:
            for span in scope.spans:
                yield Kept(
                    name=span.name,
                    trace=span.trace_id.hex(),
                    id=span.span_id.hex(),
                    parent=span.parent_span_id.hex(),
                    instance=str(about["service.instance.id"]),
                    values={
                        **_values(span.attributes),
                        "began": span.start_time_unix_nano,
                        "failed": span.status.code == span.status.STATUS_CODE_ERROR,
                    },
                )


def _values(pairs: Any) -> dict[str, Any]:
    return {
        pair.key.removeprefix("laufzettel."): getattr(pair.value, pair.value.WhichOneof("value"))
        for pair in pairs
    }

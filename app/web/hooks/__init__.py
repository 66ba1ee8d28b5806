"""``POST /hooks/{source}``: verify over the raw bytes, read, have it stored, answer.

A plain ASGI application: a framework's routing would cost more than all of this. It never
redirects and knows no worker, broker or destination.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime

from app.config import Source
from app.points import point
from app.telemetry import log
from app.web.hooks import answers
from app.web.hooks.answers import Answer
from app.web.hooks.arrival import Arrival, trace_of
from app.web.hooks.body import Receive, Scope, Send, Unread, declared_bytes, read_body
from app.web.hooks.desk import Desk, Parts
from app.web.problems import Problem
from domain import profiles, schemes
from domain.profiles import Refused

__all__ = ["PREFIX", "Hooks", "Parts"]

PREFIX = "/hooks/"
# Bodies that are read or wait to be stored at one moment: beyond it, senders come again.
MOST_HELD_BYTES = 64 * 2**20
_METHODS = frozenset({"POST", "GET", "HEAD", "OPTIONS"})
_BUSY_WAIT_S = 2
_BROKEN_WAIT_S = 30


class Hooks:
    """The ASGI application of all sources' intake addresses."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self._sources: Mapping[str, Source] = {
            name: source for source in parts.sources for name in (*source.was, source.name)
        }
        self.desk = Desk(parts)
        self._held_bytes = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request, also one whose body never came whole: its sender may still listen."""
        began = self._parts.clock.monotonic()
        name = scope["path"][len(PREFIX) :].removesuffix("/")
        source = self._sources.get(name)
        if source is None:
            answer = answers.problem(Problem(404, "not-found"))
        else:
            answer = await self._surely(source, scope, receive, began)
        self._count(source, answer, began)
        point("hooks.answer.before")
        headers = [*answer.headers, (b"content-length", str(len(answer.body)).encode())]
        await send({"type": "http.response.start", "status": answer.status, "headers": headers})
        await send({"type": "http.response.body", "body": answer.body})

    async def _surely(self, source: Source, scope: Scope, receive: Receive, began: float) -> Answer:
        try:
            return await self._visited(source, scope, receive, began)
        except Exception:
            # Never 500: there are platforms that try again after 503 only.
            log.exception("hooks.request.broken", source=source.name)
            return answers.unavailable("unavailable", retry_after_s=_BROKEN_WAIT_S)

    async def _visited(
        self, source: Source, scope: Scope, receive: Receive, began: float
    ) -> Answer:
        if scope["method"] not in _METHODS:
            return answers.not_allowed()
        headers = tuple((n.decode("latin-1"), v.decode("latin-1")) for n, v in scope["headers"])
        length_bytes = declared_bytes(headers)
        limit_bytes = source.max_body_bytes
        held = limit_bytes if length_bytes is None else min(max(length_bytes, 0), limit_bytes)
        if self._held_bytes + held > MOST_HELD_BYTES:
            return answers.unavailable("busy", retry_after_s=_BUSY_WAIT_S)
        self._held_bytes += held
        try:
            body = await read_body(receive, limit_bytes=limit_bytes, length_bytes=length_bytes)
            if isinstance(body, str):
                return self._unread(source, body)
            point("hooks.body_read")
            request = _request(self._parts.public_url, scope, headers, body)
            return _echoed(source, request, await self._answer(source, request, began))
        finally:
            self._held_bytes -= held

    def _unread(self, source: Source, why: Unread) -> Answer:
        match why:
            case "cut-off":
                self.desk.refuse(source, "the body ended early or is not in its form")
                return answers.problem(Problem(400, "invalid-body"))
            case "too-large":
                self.desk.refuse(source, f"larger than {source.max_body_bytes} bytes")
                return answers.problem(Problem(413, "body-too-large"))
            case "broken":
                self.desk.refuse(source, "the length of the body is not what its header says")
                return answers.problem(Problem(400, "invalid-body"))

    async def _answer(self, source: Source, request: schemes.Request, began: float) -> Answer:
        parts = self._parts
        now = parts.clock.now()
        greeting = profiles.greeting(source.ready, request)
        if greeting is not None:
            return answers.handshake(greeting)
        if request.method != "POST":
            return answers.not_allowed()
        verdict = await self._verified(source, request, now)
        if isinstance(verdict, Refused):
            self.desk.refuse(source, verdict.reason)
            return answers.problem(Problem(401, "authentication"))
        arrival = Arrival(
            source=source,
            request=request,
            key=parts.ledger.book.key,
            key_id=verdict.key_id,
            trace=trace_of(request),
            received_at=now,
            deadline=began + source.ready.profile.answer.wait_s,
        )
        if not parts.traces.is_on:
            return await self.desk.take(arrival)
        return await self._traced(arrival)

    async def _traced(self, arrival: Arrival) -> Answer:
        name, parent = arrival.source.name, arrival.trace
        about = self._parts.traces.span("delivery.accept", "server", parent=parent, source=name)
        with about as span:
            answer = await self.desk.take(replace(arrival, trace=span.context or arrival.trace))
            span.note(status=answer.status, verdict=answer.verdict)
            if answer.status >= 500:
                span.fail("not stored")
        return answer

    async def _verified(
        self, source: Source, request: schemes.Request, now: datetime
    ) -> profiles.Verified | Refused:
        primitives = self._parts.primitives
        if source.ready.profile.verifier is None or primitives.certificate is None:
            return profiles.verify(source.ready, request, now, primitives)
        # A certificate may have to be fetched, which must not hold up the others.
        return await asyncio.to_thread(profiles.verify, source.ready, request, now, primitives)

    def _count(self, source: Source | None, answer: Answer, began: float) -> None:
        if source is None or not answer.verdict:
            return
        metrics, name = self._parts.metrics, source.name
        metrics.count("deliveries", source=name, verdict=answer.verdict)
        metrics.observe("accept_seconds", self._parts.clock.monotonic() - began, source=name)


def _request(
    public_url: str, scope: Scope, headers: tuple[tuple[str, str], ...], body: bytes
) -> schemes.Request:
    path = (scope.get("raw_path") or scope["path"].encode()).decode("latin-1")
    query = scope["query_string"].decode("latin-1")
    url = f"{public_url}{path}{'?' if query else ''}{query}"
    return schemes.Request(scope["method"], url, path, query, headers, body)


def _echoed(source: Source, request: schemes.Request, answer: Answer) -> Answer:
    name = source.ready.profile.answer.echo
    value = request.header(name) if name else None
    if not value:
        return answer
    echo = (name.encode("latin-1"), value.encode("latin-1"))
    return replace(answer, headers=(*answer.headers, echo))

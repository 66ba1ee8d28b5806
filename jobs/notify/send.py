"""One attempt to deliver a message."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime

from app.points import point
from domain.outcomes import Again, Done
from jobs.notify.policy import judged, unanswered
from jobs.notify.reading import Reply, kept_body, kept_headers, own_secrets, read, secrets_in
from jobs.notify.values import Attempt, NotifyJob, NotifyOutcome
from jobs.outbound import shown
from jobs.tools import Header, Limits, Request, SignInFailed, Tools, Trouble

_RENEWABLE = 401


def notify(job: NotifyJob, tools: Tools) -> tuple[Attempt, NotifyOutcome]:
    """Send the message's exact bytes once; what came of it, and what operators will see.

    At most one request reaches the receiver, save that credentials found stale are renewed and
    the request is made once more. No redirect is followed.
    """
    at, began_s = tools.clock.now(), tools.clock.monotonic()
    attempt, outcome = _tried(job, tools, at)
    duration_ms = round((tools.clock.monotonic() - began_s) * 1000)
    error = "" if isinstance(outcome, Done) else outcome.reason
    return replace(attempt, duration_ms=duration_ms, error=error), outcome


def _tried(job: NotifyJob, tools: Tools, at: datetime) -> tuple[Attempt, NotifyOutcome]:
    settings = job.destination
    blank = Attempt(shown(settings.url), at, 0, method=settings.method)
    proof = settings.credentials.headers()
    if isinstance(proof, SignInFailed):
        return blank, Again(proof.reason, trouble=True)
    limits = Limits(settings.timeout_s, settings.timeout_s)
    reply = _exchanged(job, tools, (proof, at, limits))
    if isinstance(reply, Reply) and reply.status == _RENEWABLE:
        newer = settings.credentials.renewed(proof)
        if newer is not None and not isinstance(newer, SignInFailed):
            proof = newer
            reply = _exchanged(job, tools, (proof, at, limits))
    headers = _headers(job, proof, at)
    signatures = tuple(header for header in headers if "signature" in header[0])
    secrets = (*secrets_in(proof), *secrets_in(signatures), *own_secrets(settings))
    asked = replace(blank, request_headers=kept_headers(headers, secrets))
    if not isinstance(reply, Reply):
        return asked, unanswered(reply, settings)
    attempt = replace(
        asked,
        status=reply.status,
        timing=reply.timing,
        response_headers=kept_headers(reply.headers, secrets),
        response_body=kept_body(reply, secrets),
    )
    return attempt, judged(reply, settings, now=tools.clock.now(), secrets=secrets)


def _exchanged(
    job: NotifyJob, tools: Tools, terms: tuple[tuple[Header, ...], datetime, Limits]
) -> Reply | Trouble:
    proof, at, limits = terms
    settings = job.destination
    request = Request(settings.method, settings.url, _headers(job, proof, at), job.body)
    point("notify.send.before")
    with tools.http.open(
        request, target=settings.target, limits=limits, pulse=lambda: True
    ) as answer:
        reply = answer if isinstance(answer, Trouble) else read(answer)
    point("notify.send.after")
    return reply


def _headers(job: NotifyJob, proof: tuple[Header, ...], at: datetime) -> tuple[Header, ...]:
    settings = job.destination
    own: list[Header] = [
        ("content-type", job.content_type),
        ("webhook-id", job.message_id),
        ("webhook-timestamp", str(int(at.timestamp()))),
        ("idempotency-key", job.message_id),
        ("accept-encoding", "identity"),
    ]
    if job.trace:
        own.append(("traceparent", job.trace))
    if settings.sign is not None:
        own.append(("webhook-signature", settings.sign(job.message_id, at, job.body)))
    # What the protocol promises cannot be replaced by a destination's own headers.
    taken = {name for name, _ in own} | {"host", "content-length", "transfer-encoding"}
    added = [(n, v) for n, v in (*settings.headers, *proof) if n.lower() not in taken]
    return (*own, *added)

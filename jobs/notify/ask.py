"""Asking a receiver whether it has a message whose sending got no answer."""

from __future__ import annotations

from urllib.parse import quote

from app.points import point
from domain.outcomes import Again, Done, Unclear
from jobs.notify.reading import is_confirmed, is_status, read, reference
from jobs.notify.values import Delivered, NotifyJob
from jobs.outbound import host_and_port, parse
from jobs.tools import AddressRefused, Limits, Request, SignInFailed, Tools, Trouble, Whole

_ABSENT = frozenset({404, 410})


def ask(job: NotifyJob, tools: Tools) -> Done[Delivered] | Again | Unclear:
    """Done if the receiver has it; again (to be sent anew) if it says not; else still unclear."""
    settings = job.destination
    url = settings.ask_url.replace("{message_id}", quote(job.message_id, safe=""))
    proof = settings.credentials.headers()
    if isinstance(proof, SignInFailed):
        return Unclear(proof.reason)
    request = Request(settings.ask_method, url, proof if _is_same_host(url, settings.url) else ())
    limits = Limits(settings.timeout_s, settings.timeout_s)
    point("notify.ask.before")
    with tools.http.open(
        request, target=settings.target, limits=limits, pulse=lambda: True
    ) as answer:
        reply = None if isinstance(answer, Trouble) else read(answer)
    point("notify.ask.after")
    if reply is None:
        return Unclear("asked the receiver, no answer")
    if reply.status in _ABSENT:
        return Again("the receiver does not have it", counted=False)
    is_whole = isinstance(reply.ended, Whole)
    if is_status(reply.status, ("2xx",)) and is_whole and is_confirmed(reply, settings):
        return Done(Delivered(reference(reply, settings)))
    return Unclear(f"asked the receiver, answered {reply.status}")


def _is_same_host(url: str, other: str) -> bool:
    one, two = parse(url), parse(other)
    if isinstance(one, AddressRefused) or isinstance(two, AddressRefused):
        return False
    return one.scheme == two.scheme and host_and_port(one) == host_and_port(two)

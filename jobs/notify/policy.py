"""What a receiver's answers and silences mean for a message."""

from __future__ import annotations

from datetime import datetime
from urllib.parse import urljoin

from domain.outcomes import Again, Dead, Done, Unclear
from domain.schedule import retry_after
from jobs.notify.reading import Reply, blanked, is_confirmed, is_status, reference
from jobs.notify.values import Delivered, NotifyOutcome, NotifySettings
from jobs.outbound import shown
from jobs.tools import (
    AddressRefused,
    Broken,
    CertificateTrouble,
    ConnectFailed,
    Stopped,
    TimedOut,
    Trouble,
)

_TEXT_CHARS = 200
_GONE = 410
_TROUBLE = frozenset({401, 403, 404, 408, 425})


def judged(
    reply: Reply, settings: NotifySettings, *, now: datetime, secrets: tuple[str, ...]
) -> NotifyOutcome:
    """The outcome of an answer."""
    if is_status(reply.status, settings.delivered_status):
        return _accepted(reply, settings, secrets)
    if reply.status == _GONE:
        return Dead(f"answered {reply.status}", pauses=True)
    if reply.status in settings.permanent:
        return Dead(_words(reply, secrets))
    if 300 <= reply.status < 400:
        return Again(_redirect(reply, settings), trouble=True)
    asked_s = retry_after(dict(reply.headers).get("retry-after", ""), now)
    is_busy = reply.status in {429, 503}
    return Again(
        _words(reply, secrets),
        wait_s=asked_s,
        everyone=is_busy and asked_s is not None,
        trouble=reply.status in _TROUBLE or reply.status >= 500,
    )


def unanswered(trouble: Trouble, settings: NotifySettings) -> NotifyOutcome:
    """The outcome of a request that got no answer: unclear only if all of it had left."""
    match trouble:
        case AddressRefused(reason=reason):
            return Again(f"address not allowed: {reason}", trouble=True)
        case CertificateTrouble(reason=reason):
            return Again(f"certificate: {reason}", trouble=True)
        case ConnectFailed(reason=reason):
            return Again(f"no connection: {reason}", trouble=True)
        case TimedOut(sent=True):
            return Unclear(f"sent, no answer within {settings.timeout_s:g} s")
        case TimedOut():
            return Again(f"not sent within {settings.timeout_s:g} s", trouble=True)
        case Broken(sent=True, reason=reason):
            return Unclear(f"sent, no answer: {reason}")
        case Broken(reason=reason):
            return Again(f"not sent: {reason}", trouble=True)
        case Stopped():
            return Again("stopped", counted=False)


def _accepted(reply: Reply, settings: NotifySettings, secrets: tuple[str, ...]) -> NotifyOutcome:
    if isinstance(reply.ended, TimedOut):
        # The status says yes and the answer never ended: whether it holds is not known.
        return Unclear(f"answer not complete within {settings.timeout_s:g} s")
    if not is_confirmed(reply, settings):
        return Again(_words(reply, secrets))
    return Done(Delivered(reference(reply, settings)))


def _redirect(reply: Reply, settings: NotifySettings) -> str:
    place = dict(reply.headers).get("location", "")
    try:
        there = shown(urljoin(settings.url, place)).partition("://")[2]
    except ValueError:
        there = ""
    return f"receiver redirects to {there[:_TEXT_CHARS] or 'no valid address'}"


def _words(reply: Reply, secrets: tuple[str, ...]) -> str:
    text = " ".join(blanked(reply.body.decode(errors="replace"), secrets).split())[:_TEXT_CHARS]
    return f"answered {reply.status}" + (f": {text}" if text else "")

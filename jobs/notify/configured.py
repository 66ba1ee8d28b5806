"""A destination of the configuration, as a sender sees it."""

from __future__ import annotations

from app.clock import Clock
from app.config import Destination
from domain.signatures import InvalidSecret
from jobs.notify.signing import signer
from jobs.notify.values import NotifySettings
from jobs.outbound import credentials_of, named_host
from jobs.tools import Http, Target


def settings_of(
    destination: Destination, *, http: Http, clock: Clock
) -> NotifySettings | InvalidSecret:
    """What sending to this destination needs; built once, it holds renewable credentials."""
    secrets = tuple(secret.reveal() for secret in destination.secrets)
    # Without a secret messages go out unsigned, which check warns of.
    sign = signer(secrets) if secrets else None
    if isinstance(sign, InvalidSecret):
        return sign
    target = target_of(destination)
    rule = destination.delivered
    return NotifySettings(
        destination.name,
        destination.url,
        sign,
        destination.method,
        destination.headers,
        credentials_of(destination.auth, http=http, clock=clock, target=target),
        target,
        destination.timeout_s,
        destination.permanent,
        delivered_status=rule.status,
        delivered_pointer=rule.pointer,
        delivered_equals=rule.equals,
        reference=destination.reference,
        ask_url=destination.ask,
    )


def target_of(destination: Destination) -> Target:
    """Whom requests to this destination may reach: private addresses only by ``private``."""
    private = named_host(destination.url), named_host(destination.ask)
    return Target(
        tuple(host for host in private if host) if destination.private else (),
        str(destination.ca or ""),
        str(destination.client_cert or ""),
        proxy=destination.proxy.reveal() if destination.proxy else "",
    )

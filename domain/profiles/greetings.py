"""Handshakes that come unsigned, answered as each provider's documentation says.

What is echoed is bounded and always plain text or JSON, never a page.
"""

from __future__ import annotations

import json

from domain import strict_json
from domain.canonical import pointer
from domain.profiles.proofs import matching_key
from domain.profiles.values import Handshake, Source
from domain.schemes import Request
from domain.strict_json import InvalidJson

_PLAIN = (("content-type", "text/plain; charset=utf-8"), ("x-content-type-options", "nosniff"))
_JSON = (("content-type", "application/json"),)
_MAX_ECHO_CHARACTERS = 2048
_EVENT_GRID_ORIGIN = "eventgrid.azure.net"


def plain(text: str) -> Handshake:
    """The text back, as plain text."""
    return Handshake(headers=_PLAIN, body=text.encode())


def challenge(_source: Source, request: Request) -> Handshake | None:
    """Dropbox: ``GET ?challenge=`` is echoed."""
    text = request.parameter("challenge")
    return plain(text) if request.method == "GET" and _is_echo(text) and text else None


def validation_token(_source: Source, request: Request) -> Handshake | None:
    """Microsoft Graph (``validationToken``) and SharePoint (``validationtoken``)."""
    if request.method != "POST" or "alidation" not in request.query:
        return None
    text = request.parameter("validationToken") or request.parameter("validationtoken")
    return plain(text) if _is_echo(text) and text else None


def client_id(source: Source, request: Request) -> Handshake | None:
    """Adobe Sign: a client id of ours is echoed in its header; another gets no success."""
    told = request.header("x-adobesign-clientid")
    if request.method != "GET" or not told:
        return None
    is_ours = matching_key(source.keys, told) is not None
    return Handshake(headers=(("x-adobesign-clientid", told),)) if is_ours else None


def abuse_protection(source: Source, request: Request) -> Handshake | None:
    """CloudEvents web hooks: consent is the header, so an unknown origin gets none."""
    origin = request.header("webhook-request-origin")
    if request.method != "OPTIONS" or not origin:
        return None
    headers: list[tuple[str, str]] = [("allow", "POST, OPTIONS")]
    if origin in (source.sender or (_EVENT_GRID_ORIGIN,)):
        rate = request.header("webhook-request-rate") or ""
        headers.append(("webhook-allowed-origin", origin))
        headers.append(("webhook-allowed-rate", rate if _is_rate(rate) else "*"))
    return Handshake(headers=tuple(headers))


def _is_rate(text: str) -> bool:
    return text.isascii() and text.isdecimal() and len(text) < len("1000000000")


def event_grid(source: Source, request: Request) -> Handshake | None:
    """Azure Event Grid: the validation code back as JSON; its ``validationUrl`` is never called."""
    if request.method == "OPTIONS":
        return abuse_protection(source, request)
    if request.header("aeg-event-type") != "SubscriptionValidation":
        return None
    body = strict_json.parse_value(request.body)
    code = None if isinstance(body, InvalidJson) else pointer(body, "/0/data/validationCode")
    if not isinstance(code, str) or not _is_echo(code):
        return None
    return Handshake(headers=_JSON, body=json.dumps({"validationResponse": code}).encode())


def _is_echo(text: str | None) -> bool:
    return bool(text) and len(text or "") <= _MAX_ECHO_CHARACTERS

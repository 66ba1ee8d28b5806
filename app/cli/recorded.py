"""Recorded requests: JSON as ``explain`` reads it, into requests as acceptance sees them."""

from __future__ import annotations

import base64
import binascii
import json
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from domain.schemes import Request

_WANTED = "method, url, headers, body_utf8 or body_base64"


@dataclass(frozen=True, slots=True)
class Unreadable:
    """Why the input is no recorded request, and where."""

    place: str
    what: str


def recorded(text: str, *, url: str) -> list[Request] | Unreadable:
    """One object, or one a line; ``url`` is taken where a request has none."""
    records = _records(text)
    if isinstance(records, Unreadable):
        return records
    found = []
    for number, record in enumerate(records, start=1):
        request = _request(record, url)
        if isinstance(request, str):
            return Unreadable(f"request {number}", request)
        found.append(request)
    return found


def _records(text: str) -> list[Any] | Unreadable:
    if not text.strip():
        return Unreadable("the input", "is empty")
    try:
        whole = json.loads(text)
    except ValueError:
        return _lines(text)
    return whole if isinstance(whole, list) else [whole]


def _lines(text: str) -> list[Any] | Unreadable:
    found = []
    for number, line in enumerate(text.splitlines(), start=1):
        if not line.strip():
            continue
        try:
            found.append(json.loads(line))
        except ValueError as error:
            return Unreadable(f"line {number}", f"is no JSON ({error})")
    return found


def _request(record: Any, url: str) -> Request | str:
    if not isinstance(record, dict):
        return f"is no object with {_WANTED}"
    body = _body(record)
    if isinstance(body, str):
        return body
    headers = _headers(record.get("headers") or {})
    if isinstance(headers, str):
        return headers
    told = record.get("url") or url
    method = record.get("method") or "POST"
    if not isinstance(told, str) or not isinstance(method, str):
        return "has a method or url that is no text"
    parts = urlsplit(told)
    return Request(method.upper(), told, parts.path, parts.query, headers, body)


def _body(record: dict[str, Any]) -> bytes | str:
    plain, encoded = record.get("body_utf8"), record.get("body_base64")
    if plain is not None and encoded is not None:
        return "has body_utf8 and body_base64: keep one"
    if encoded is not None:
        try:
            return base64.b64decode(encoded, validate=True)
        except (binascii.Error, TypeError, ValueError):
            return "has a body_base64 that is no base64"
    if plain is None:
        return b""
    if not isinstance(plain, str):
        return "has a body_utf8 that is no text"
    # A lone surrogate can be written in JSON and not in UTF-8: such bytes go into body_base64.
    try:
        return plain.encode()
    except UnicodeEncodeError:
        return "has a body_utf8 that is no UTF-8: write it as body_base64"


def _headers(told: Any) -> tuple[tuple[str, str], ...] | str:
    pairs = list(told.items()) if isinstance(told, dict) else told
    if not isinstance(pairs, list):
        return "has headers that are no object"
    found: list[tuple[str, str]] = []
    for pair in pairs:
        if not isinstance(pair, (list, tuple)) or len(pair) != 2:
            return "has a header that is no pair"
        name, value = pair
        values = value if isinstance(value, list) else [value]
        found += [(str(name).lower(), _wire(str(one))) for one in values]
    return tuple(found)


def _wire(value: str) -> str:
    # Header values are the bytes on the wire, read as Latin-1.
    return value.encode("utf-8", "surrogateescape").decode("latin-1")

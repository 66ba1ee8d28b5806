"""Fields of a form body: URL-encoded, or multipart with one field after another."""

from __future__ import annotations

import re
from urllib.parse import unquote_to_bytes

from domain.schemes import Request

_BOUNDARY = re.compile(r'boundary="?([^";,\s]{1,70})"?', re.IGNORECASE)
_FIELD_NAME = re.compile(rb'\bname="([^"\r\n]{1,100})"', re.IGNORECASE)
_FILE_NAME = re.compile(rb"\bfilename\*?=", re.IGNORECASE)
_MAX_FIELDS = 200


def form_field(request: Request, name: str) -> bytes | None:
    """The bytes of a field that came exactly once; ``None`` where the body is no form."""
    fields = form_fields(request)
    return None if fields is None else fields.get(name)


def form_fields(request: Request) -> dict[str, bytes] | None:
    """The fields that came exactly once, without attached files; ``None``: the body is no form."""
    media_type = (request.header("content-type") or "").lower()
    if media_type.startswith("application/x-www-form-urlencoded"):
        pairs = _url_encoded(request.body)
    elif media_type.startswith("multipart/form-data"):
        pairs = _multipart(request)
    else:
        return None
    names = [name for name, _ in pairs]
    return {name: value for name, value in pairs if names.count(name) == 1}


def _url_encoded(body: bytes) -> list[tuple[str, bytes]]:
    pairs = (pair.partition(b"=") for pair in body.split(b"&", _MAX_FIELDS)[:_MAX_FIELDS])
    return [(_plain(name).decode("latin-1"), _plain(value)) for name, _, value in pairs]


def _plain(text: bytes) -> bytes:
    return unquote_to_bytes(text.replace(b"+", b" "))


def _multipart(request: Request) -> list[tuple[str, bytes]]:
    boundary = _BOUNDARY.search(request.header("content-type") or "")
    if boundary is None:
        return []
    line = b"\r\n--" + boundary[1].encode("latin-1")
    found = []
    for part in (b"\r\n" + request.body).split(line, _MAX_FIELDS)[1:]:
        head, _, content = part.partition(b"\r\n\r\n")
        name = _FIELD_NAME.search(head)
        if name and not _FILE_NAME.search(head):
            found.append((name[1].decode("latin-1"), content))
    return found

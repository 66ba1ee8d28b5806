"""Asking a source for a new address of a version whose link has run out."""

from __future__ import annotations

from collections.abc import Callable
from urllib.parse import quote

from app.points import point
from domain import canonical, strict_json
from domain.strict_json import InvalidJson
from jobs.download.values import DownloadJob
from jobs.tools import (
    Answer,
    Credentials,
    Http,
    Limits,
    Request,
    SignInFailed,
    Target,
    Trouble,
    Whole,
)

_LARGEST_ANSWER_BYTES = 64 * 1024
_TIMEOUT_S = 20.0
_FIRST_ERROR = 300


def asking(
    place: str, pointer: str, *, http: Http, credentials: Credentials, target: Target
) -> Callable[[DownloadJob], str | None]:
    """A function that asks ``place`` and reads the link at ``pointer`` of its answer.

    ``{file_id}`` and ``{version}`` in ``place`` stand for those of the job. It gives ``None``
    where no link came; whether bytes may be fetched there is judged as for any link.
    """

    def fresh_link(job: DownloadJob) -> str | None:
        proof = credentials.headers()
        if isinstance(proof, SignInFailed):
            return None
        url = place.replace("{file_id}", quote(job.file_id, safe=""))
        url = url.replace("{version}", quote(job.version, safe=""))
        request = Request("GET", url, (*proof, ("accept", "application/json")))
        point("download.request.before")
        limits = Limits(_TIMEOUT_S, _TIMEOUT_S)
        with http.open(request, target=target, limits=limits, pulse=lambda: True) as answer:
            body = _body(answer)
        point("download.request.after")
        return _link(body, pointer)

    return fresh_link


def _body(answer: Answer | Trouble) -> bytes:
    """The body of a good and whole answer; nothing of any other."""
    if isinstance(answer, Trouble) or answer.status >= _FIRST_ERROR:
        return b""
    pieces = bytearray()
    poured = answer.pour(pieces.extend, limit_bytes=_LARGEST_ANSWER_BYTES)
    return bytes(pieces) if isinstance(poured, Whole) else b""


def _link(body: bytes, pointer: str) -> str | None:
    document = strict_json.parse_value(body)
    if isinstance(document, InvalidJson):
        return None
    found = canonical.follow(document, canonical.tokens(pointer))
    return found if isinstance(found, str) and found else None

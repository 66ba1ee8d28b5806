"""The bytes of artifacts: in ranges, never as a page of ours."""

from __future__ import annotations

import re
from typing import Any
from urllib.parse import quote

from litestar import MediaType, Request, Response, get
from litestar.params import FromPath
from litestar.response import Stream

from app.artifacts import BlobsAwayError, MissingBlobError
from app.store.reading import artifacts, files
from app.store.reading.artifacts import ArtifactRow
from app.web.api.office import Asker, Here, Office, there
from app.web.api.shapes import artifacts_of
from app.web.auth import Who, needs
from app.web.problems import Problem
from app.web.rest import ProblemError

_RANGE = re.compile(r"bytes=(\d{0,18})-(\d{0,18})", re.ASCII)
# What a browser may show without running any of it; all else is a download.
_SHOWN = {"image/png", "image/jpeg", "image/gif", "image/webp", "text/plain", "application/pdf"}
_SAFE_TYPE = re.compile(r"[a-z0-9][a-z0-9.+-]{0,60}/[a-z0-9][a-z0-9.+-]{0,80}", re.ASCII)
_UNSAFE = re.compile(r"[^A-Za-z0-9 ._()-]")


@get(
    "/artifacts/{artifact:str}",
    guards=[needs("receiver")],
    sync_to_thread=True,
    summary="The bytes of an artifact",
    tags=["artifacts"],
    media_type=MediaType.TEXT,
)
def artifact_bytes(
    request: Request[Any, Any, Any], office: Here, who: Asker, artifact: FromPath[str]
) -> Response[Any]:
    """The bytes, whole or one range; a receiver gets what its messages name."""
    with office.store.read() as connection:
        row = there(artifacts.one(connection, artifact))
    there(row if _may_have(office, who, row) else None)
    headers = _headers(row)
    etag = headers["etag"]
    if etag in request.headers.get("if-none-match", ""):
        return Response(None, status_code=304, headers=headers)
    wanted = request.headers.get("range", "")
    if request.headers.get("if-range", etag) != etag:
        wanted = ""
    start, end = _span(wanted, row.size_bytes)
    status = 200
    if _RANGE.fullmatch(wanted.strip()) and row.size_bytes:
        status = 206
        headers["content-range"] = f"bytes {start}-{end - 1}/{row.size_bytes}"
    headers["content-length"] = str(end - start)
    try:
        pieces = office.blobs.stream(row.sha256, start, end)
    except MissingBlobError:
        raise ProblemError(Problem(410, "gone", "the bytes were removed")) from None
    except BlobsAwayError:
        raise ProblemError(Problem(503, "unavailable"), {"retry-after": "5"}) from None
    return Stream(pieces, status_code=status, headers=headers, media_type=headers["content-type"])


def _may_have(office: Office, who: Who, row: ArtifactRow) -> bool:
    if who.destination is None:
        return who.sees(row.source)
    with office.store.read() as connection:
        file = there(files.one(connection, row.stream)).file
    told = {
        message.version
        for message in file.messages.values()
        if message.destination == who.destination and message.type == "file.version.completed"
    }
    named = (file.versions[version] for version in told if version in file.versions)
    return any(row.id == a.id for version in named for a in artifacts_of(file, version))


def _headers(row: ArtifactRow) -> dict[str, str]:
    is_shown = row.media_type in _SHOWN
    kind = row.media_type if _SAFE_TYPE.fullmatch(row.media_type) else "application/octet-stream"
    return {
        "content-type": f"{kind}; charset=utf-8" if kind == "text/plain" else kind,
        "content-disposition": _disposition(row, "inline" if is_shown else "attachment"),
        "etag": f'"{row.sha256}"',
        "accept-ranges": "bytes",
        "cache-control": "private, max-age=31536000, immutable",
        "x-content-type-options": "nosniff",
        "content-security-policy": "sandbox; default-src 'none'; style-src 'unsafe-inline'",
        "cross-origin-resource-policy": "same-origin",
        "referrer-policy": "no-referrer",
    }


def _disposition(row: ArtifactRow, how: str) -> str:
    name = row.file_name if row.name == "original" else f"{row.file_name}.{row.name}"
    name = name.replace("\\", "/").rpartition("/")[2].strip(". ") or "file"
    # A line break or a turn of direction in a name would fool whoever saves the file.
    name = "".join(letter if letter.isprintable() else "_" for letter in name)
    plain = _UNSAFE.sub("_", name)[:120]
    whole = quote(name.encode("utf-8", "replace")[:400].decode("utf-8", "ignore"), safe="")
    return f"{how}; filename=\"{plain}\"; filename*=UTF-8''{whole}"


def _span(wanted: str, size_bytes: int) -> tuple[int, int]:
    """The one range that is asked for; several, or what is no range, mean the whole."""
    match = _RANGE.fullmatch(wanted.strip())
    if match is None or not (match[1] or match[2]):
        return 0, size_bytes
    if not match[1]:
        start, end = max(size_bytes - int(match[2]), 0), size_bytes
    else:
        start = int(match[1])
        end = min(int(match[2]) + 1, size_bytes) if match[2] else size_bytes
    if start >= end:
        headers = {"content-range": f"bytes */{size_bytes}"}
        raise ProblemError(Problem(416, "range-not-satisfiable"), headers)
    return start, end


HANDLERS: list[Any] = [artifact_bytes]

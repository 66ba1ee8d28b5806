"""Is what came what was announced? Size, hash, and pages that come in a file's place."""

from __future__ import annotations

import mimetypes
from dataclasses import dataclass

from domain.outcomes import Again
from jobs.download.values import DownloadJob

HEAD_BYTES = 4096
_PDF_LEAD_BYTES = 1024
_MAGIC = (
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF8", "image/gif"),
    (b"PK\x03\x04", "application/zip"),
)
_PAGES = (b"<!doctype html", b"<html", b"<head", b"<body", b"<script")
_HTML = frozenset({"text/html", "application/xhtml+xml"})


@dataclass(frozen=True, slots=True)
class Received:
    """What came: whole by its own account."""

    sha256: str
    size_bytes: int
    media_type: str
    head: bytes


def media_type_of(header: str) -> str:
    """A Content-Type without its parameters, in lower case."""
    return header.partition(";")[0].strip().lower()


def expected_type(job: DownloadJob) -> str:
    """The announced type, else the one that the name suggests; "" if neither says anything."""
    announced = media_type_of(job.media_type)
    if announced and announced != "application/octet-stream":
        return announced
    return mimetypes.guess_type(job.name.rpartition("/")[2])[0] or ""


def contradiction(job: DownloadJob, received: Received) -> Again | None:
    """Why the bytes are not those of the event; ``None`` if nothing speaks against them."""
    if job.sha256 and received.sha256 == job.sha256.lower():
        return None
    page = _page_instead(expected_type(job), received)
    if page:
        return Again(page)
    if job.size_bytes is not None and received.size_bytes < job.size_bytes:
        return Again(f"short body: {received.size_bytes} of {job.size_bytes}")
    is_other_size = job.size_bytes is not None and received.size_bytes != job.size_bytes
    if (is_other_size or job.sha256) and not job.settings.rewrites:
        return Again(f"content does not match announcement, got {received.size_bytes} bytes")
    return None


def note(job: DownloadJob, received: Received) -> str:
    """What was taken although it differs from the announcement."""
    is_other = job.sha256 and received.sha256 != job.sha256.lower()
    if is_other or job.size_bytes not in {None, received.size_bytes}:
        return "content differs from announcement: this source rewrites files"
    return ""


def _page_instead(expected: str, received: Received) -> str:
    """The words for a sign-in page or an error message that came as if it were the file."""
    if not expected or not received.head:
        return ""
    sniffed, sent = _sniffed(received.head), received.media_type
    instead = ""
    if expected not in _HTML and _is_page(expected, sniffed, sent):
        instead = "text/html"
    elif (
        not _is_json(expected) and _is_json(sent) and sniffed in {"application/json", "text/plain"}
    ):
        instead = "application/json"
    return f"source sent {instead} instead of {expected}" if instead else ""


def _is_page(expected: str, sniffed: str, sent: str) -> bool:
    if sniffed == "text/html":
        # HTML source is honest content of a text file, unless it was served as a page.
        return sent in _HTML or not _is_text(expected)
    return sniffed == "text/plain" and sent in _HTML and not _is_text(expected)


def _is_text(media_type: str) -> bool:
    return media_type.startswith(("text/", "message/")) or media_type.endswith(("xml", "script"))


def _is_json(media_type: str) -> bool:
    return media_type.endswith(("/json", "+json"))


def _sniffed(head: bytes) -> str:
    if b"%PDF-" in head[:_PDF_LEAD_BYTES]:
        return "application/pdf"
    if found := next((name for magic, name in _MAGIC if head.startswith(magic)), ""):
        return found
    text = head.removeprefix(b"\xef\xbb\xbf").lstrip().lower()
    if text.startswith(_PAGES):
        return "text/html"
    if b"\0" in head:
        return ""
    return "application/json" if text.startswith((b"{", b"[")) else "text/plain"

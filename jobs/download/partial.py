"""A temporary file that fills, and where an answer's body begins in it."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass, field
from typing import BinaryIO

from domain.outcomes import Again
from jobs.download.content import HEAD_BYTES, Received, media_type_of
from jobs.tools import Answer

_CONTENT_RANGE = re.compile(r"bytes (\d{1,18})-(\d{1,18})/(\d{1,18}|\*)", re.ASCII)
_PARTIAL_CONTENT = 206


@dataclass(slots=True)
class Partial:
    """What lies in the temporary file so far."""

    file: BinaryIO
    hash: hashlib._Hash = field(default_factory=hashlib.sha256)
    size_bytes: int = 0
    head: bytes = b""
    etag: str = ""
    media_type: str = ""
    full_size_bytes: int | None = None

    def add(self, piece: bytes) -> None:
        """Append a piece."""
        self.file.write(piece)
        self.hash.update(piece)
        self.size_bytes += len(piece)
        if len(self.head) < HEAD_BYTES:
            self.head = (self.head + piece)[:HEAD_BYTES]

    def restart(self) -> None:
        """Forget all bytes: the source sends them from the beginning."""
        self.file.seek(0)
        self.file.truncate()
        self.hash, self.size_bytes, self.head = hashlib.sha256(), 0, b""


def begin(answer: Answer, partial: Partial) -> Again | None:
    """Make the temporary file fit to where the answer's body begins."""
    headers = dict(answer.headers)
    at = _CONTENT_RANGE.fullmatch(headers.get("content-range", ""))
    start_bytes = int(at[1]) if at else 0
    if start_bytes and (start_bytes != partial.size_bytes or _has_changed(headers, partial)):
        return Again("the source sent another range than asked for")
    if not start_bytes and partial.size_bytes:
        partial.restart()
    if answer.status == _PARTIAL_CONTENT and not at:
        return Again("the source sent a part without saying which")
    partial.media_type = media_type_of(headers.get("content-type", ""))
    partial.etag = _strong_tag(headers) or (partial.etag if start_bytes else "")
    partial.full_size_bytes = _full_size_bytes(at, headers)
    return None


def _has_changed(headers: dict[str, str], partial: Partial) -> bool:
    etag = _strong_tag(headers)
    return bool(etag and partial.etag and etag != partial.etag)


def _full_size_bytes(at: re.Match[str] | None, headers: dict[str, str]) -> int | None:
    if at:
        return None if at[3] == "*" else int(at[3])
    length = headers.get("content-length", "")
    # A packed body's length is not that of the file.
    return int(length) if length.isdigit() and not packing(headers) else None


def _strong_tag(headers: dict[str, str]) -> str:
    etag = headers.get("etag", "")
    return "" if etag.startswith("W/") or packing(headers) else etag


def packing(headers: dict[str, str]) -> str:
    """How the body is packed in transfer; "" if it is not."""
    named = headers.get("content-encoding", "").strip().lower()
    return "" if named == "identity" else named


def received(partial: Partial) -> Received:
    """The file as it came, whole."""
    return Received(partial.hash.hexdigest(), partial.size_bytes, partial.media_type, partial.head)


def short(partial: Partial) -> str:
    """The words for a body that ended early."""
    whole = "unknown" if partial.full_size_bytes is None else str(partial.full_size_bytes)
    return f"short body: {partial.size_bytes} of {whole}"

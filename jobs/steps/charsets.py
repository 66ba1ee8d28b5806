"""Which character set a text is in, and the text itself, in constant memory."""

from __future__ import annotations

import codecs
from collections.abc import Iterator
from pathlib import Path

_CHUNK_BYTES = 256 * 1024
_CHUNK_CHARACTERS = 64 * 1024
# The longer marks first: that of UTF-32 LE begins with that of UTF-16 LE.
_MARKS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
_SHOWN = {"utf-8-sig": "utf-8", "cp1252": "windows-1252", "latin-1": "iso-8859-1"}
_UNUSED_IN_1252 = b"\x81\x8d\x8f\x90\x9d"


class NotTextError(ValueError):
    """The bytes are no text in any character set that we know."""


def guess(path: Path, *, hint: str = "") -> str:
    """The codec to read a file with; raises ``NotTextError`` for binary content.

    A mark at the start decides, then ``hint``, then UTF-8 if all of it is valid; else it is taken
    for Windows-1252, which is what programs without Unicode wrote in western Europe.
    """
    with path.open("rb") as file:
        start = file.read(4)
    if marked := next((codec for mark, codec in _MARKS if start.startswith(mark)), ""):
        return marked
    if any(b"\0" in chunk for chunk in _chunks(path)):
        raise NotTextError("is binary, not text")
    if hint and _known(hint) and _decodes(path, hint):
        return codecs.lookup(hint).name
    if _decodes(path, "utf-8"):
        return "utf-8"
    unused = any(byte in chunk for chunk in _chunks(path) for byte in _UNUSED_IN_1252)
    return "latin-1" if unused else "cp1252"


def shown(codec: str) -> str:
    """The name that people and standards use for a codec."""
    return _SHOWN.get(codec, codec)


def characters(path: Path, codec: str) -> Iterator[str]:
    """The text in pieces; what a marked file holds against its own mark becomes U+FFFD."""
    with path.open(encoding=codec, errors="replace", newline="") as file:
        while piece := file.read(_CHUNK_CHARACTERS):
            yield piece


def _decodes(path: Path, codec: str) -> bool:
    decoder = codecs.getincrementaldecoder(codec)("strict")
    try:
        for chunk in _chunks(path):
            decoder.decode(chunk)
        decoder.decode(b"", final=True)
    except UnicodeError:
        return False
    return True


def _known(codec: str) -> bool:
    # Some codecs of Python's decode to bytes or do other things than reading text.
    try:
        return bool(getattr(codecs.lookup(codec), "_is_text_encoding", False))
    except (LookupError, ValueError):
        return False


def _chunks(path: Path) -> Iterator[bytes]:
    with path.open("rb") as file:
        while chunk := file.read(_CHUNK_BYTES):
            yield chunk

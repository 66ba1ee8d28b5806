"""PDF documents, opened and walked so that what is wrong with them is a word, not a traceback."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

_PASSWORD_ERROR = 4
# Readers look for header and end within so much.
_FRAME_BYTES = 1024


class UnreadableError(ValueError):
    """The document can't be read; the words say why."""


@contextmanager
def opened(path: Path) -> Iterator[Any]:
    """The open document; raises ``UnreadableError`` with "encrypted" or what is damaged."""
    from pypdfium2 import PdfDocument, PdfiumError

    try:
        document = PdfDocument(path)
    except PdfiumError as error:
        code = getattr(error, "err_code", None)
        raise UnreadableError("encrypted" if code == _PASSWORD_ERROR else _damage(path)) from error
    try:
        if len(document) == 0:
            raise UnreadableError("damaged: none of its pages can be found")
        yield document
    except PdfiumError as error:
        raise UnreadableError("damaged") from error
    finally:
        document.close()


def _damage(path: Path) -> str:
    """What of the frame of a document is missing, in words."""
    with path.open("rb") as file:
        head = file.read(_FRAME_BYTES)
        file.seek(max(0, path.stat().st_size - _FRAME_BYTES))
        tail = file.read(_FRAME_BYTES)
    if b"%PDF-" not in head:
        return "damaged: it has no PDF header"
    if b"%%EOF" not in tail:
        return "damaged: it is truncated, its end is missing"
    return "damaged: its cross-reference table or its pages are broken"


def page_texts(document: Any, *, limit: int) -> Iterator[str]:
    """The text of each page up to ``limit`` pages, one in memory at a time."""
    for number in range(min(len(document), limit)):
        page = document[number]
        text_page = page.get_textpage()
        try:
            yield _tidy(text_page.get_text_bounded())
        finally:
            text_page.close()
            page.close()


def _tidy(text: str) -> str:
    # PDFium writes U+FFFE where a word was hyphenated at a line's end.
    plain = text.replace("\r\n", "\n").replace("\ufffe", "-").replace("\0", "")
    return plain.encode("utf-8", "replace").decode()

"""Media types: by a name's extension, and by the first bytes of the content."""

from __future__ import annotations

import fnmatch
import re
from pathlib import Path

PDF = "application/pdf"
HTML = "text/html"
PLAIN = "text/plain"
CSV = "text/csv"
ZIP = "application/zip"
OLE = "application/x-ole-storage"
PNG = "image/png"
JSON = "application/json"
UNKNOWN = "application/octet-stream"

_OOXML = "application/vnd.openxmlformats-officedocument."
DOCX = f"{_OOXML}wordprocessingml.document"
XLSX = f"{_OOXML}spreadsheetml.sheet"
PPTX = f"{_OOXML}presentationml.presentation"
_ODF = "application/vnd.oasis.opendocument."
ODT, ODS, ODP = f"{_ODF}text", f"{_ODF}spreadsheet", f"{_ODF}presentation"
OFFICE = (DOCX, XLSX, PPTX, ODT, ODS, ODP)

BY_EXTENSION = {
    "pdf": PDF,
    "html": HTML,
    "htm": HTML,
    "txt": PLAIN,
    "md": "text/markdown",
    "log": PLAIN,
    "csv": CSV,
    "tsv": "text/tab-separated-values",
    "xml": "application/xml",
    "json": JSON,
    "zip": ZIP,
    "docx": DOCX,
    "xlsx": XLSX,
    "pptx": PPTX,
    "odt": ODT,
    "ods": ODS,
    "odp": ODP,
    "png": PNG,
    "jpg": "image/jpeg",
    "jpeg": "image/jpeg",
    "gif": "image/gif",
    "webp": "image/webp",
    "tif": "image/tiff",
    "tiff": "image/tiff",
    "bmp": "image/bmp",
}
_ALIASES = {
    "application/x-pdf": PDF,
    "application/xhtml+xml": HTML,
    "application/csv": CSV,
    "application/x-zip-compressed": ZIP,
    "image/jpg": "image/jpeg",
    "image/x-png": PNG,
}
_MAGIC = (
    (b"\x89PNG\r\n\x1a\n", PNG),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF87a", "image/gif"),
    (b"GIF89a", "image/gif"),
    (b"II*\0", "image/tiff"),
    (b"MM\0*", "image/tiff"),
    (b"BM", "image/bmp"),
    (b"PK\x03\x04", ZIP),
    (b"PK\x05\x06", ZIP),
    (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", OLE),
)
_HTML_START = re.compile(
    rb"^(?:\xef\xbb\xbf)?\s*(?:<!--.*?-->\s*)*<(?:!doctype\s+html|html)\b",
    re.IGNORECASE | re.DOTALL,
)
_LOOK_BYTES = 4096


def expected(media_type: str, name: str) -> str:
    """What a file should be: as announced, else by its name, else "" for unknown."""
    announced = media_type.partition(";")[0].strip().lower()
    announced = _ALIASES.get(announced, announced)
    if announced and announced not in {UNKNOWN, "binary/octet-stream"}:
        return announced
    return BY_EXTENSION.get(Path(name).suffix.lower().removeprefix("."), "")


def matches(media_type: str, patterns: tuple[str, ...]) -> bool:
    """Whether a type is among the patterns."""
    return any(fnmatch.fnmatchcase(media_type or UNKNOWN, pattern) for pattern in patterns)


def found(path: Path) -> str:
    """What the first bytes say the content is; "" where they say nothing certain."""
    with path.open("rb") as file:
        start = file.read(_LOOK_BYTES)
    if b"%PDF-" in start[:1024]:
        return PDF
    if _HTML_START.match(start):
        return HTML
    if start[:4] == b"RIFF" and start[8:12] == b"WEBP":
        return "image/webp"
    return next((kind for magic, kind in _MAGIC if start.startswith(magic)), "")


def contradicts(content: str, wanted: str) -> bool:
    """Whether content that is certainly ``content`` can't be a ``wanted``.

    A text may hold the source of a page and a "ZIP" is what office documents are made of.
    """
    if not content or not wanted or content == wanted:
        return False
    if content == ZIP:
        return wanted in BY_EXTENSION.values() and wanted not in OFFICE
    if content == HTML:
        return wanted not in {PLAIN, "text/markdown", "application/xml"}
    # "BM" alone, in ordinary writing, is no picture.
    if wanted.startswith("text/") and content == "image/bmp":
        return False
    return wanted in BY_EXTENSION.values()


def extension(media_type: str) -> str:
    """A file name's ending that programs expect for a type, with its dot; "" if none is known."""
    return next((f".{ext}" for ext, kind in BY_EXTENSION.items() if kind == media_type), "")

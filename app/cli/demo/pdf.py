"""PDF files written by hand: pages of text, and if wanted a password."""

from __future__ import annotations

import zlib
from collections.abc import Callable
from dataclasses import dataclass

from app.cli.demo.pdf_lock import Lock

_HEADER = b"%PDF-1.4\n%\xe2\xe3\xcf\xd3\n"
_CATALOG, _PAGES, _FONT, _FIRST_PAGE = 1, 2, 3, 4
_TOP_POINTS, _LEFT_POINTS, _LEADING_POINTS = 790, 56, 16
LINES_A_PAGE = 44

Page = tuple[str, ...]


def written(pages: tuple[Page, ...], *, title: str, lock: Lock | None = None) -> bytes:
    """A PDF with these pages, each a tuple of lines; locked if a lock is given."""
    seal = lock.sealed if lock else _open
    objects = [
        _dictionary("/Type /Catalog /Pages 2 0 R"),
        _dictionary(f"/Type /Pages /Count {len(pages)} /Kids [{_kids(len(pages))}]"),
        _dictionary("/Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding"),
    ]
    for number, page in enumerate(pages):
        own = _FIRST_PAGE + 2 * number
        objects += [_page(own + 1), _stream(seal(own + 1, zlib.compress(_content(page))))]
    objects.append(_information(title, len(objects) + 1, seal))
    trailer = f"/Root {_CATALOG} 0 R /Info {len(objects)} 0 R"
    if lock:
        objects.append(lock.dictionary())
        trailer += (
            f" /Encrypt {len(objects)} 0 R /ID [<{lock.file_id.hex()}> <{lock.file_id.hex()}>]"
        )
    return _assembled(objects, trailer)


Seal = Callable[[int, bytes], bytes]


def _open(_number: int, data: bytes) -> bytes:
    return data


def _kids(count: int) -> str:
    return " ".join(f"{_FIRST_PAGE + 2 * number} 0 R" for number in range(count))


def _dictionary(inner: str) -> bytes:
    return f"<< {inner} >>".encode("latin-1")


def _page(content: int) -> bytes:
    resources = f"/Resources << /Font << /F1 {_FONT} 0 R >> >>"
    box = "/MediaBox [0 0 595 842]"
    return _dictionary(
        f"/Type /Page /Parent {_PAGES} 0 R {box} {resources} /Contents {content} 0 R"
    )


def _stream(data: bytes) -> bytes:
    head = _dictionary(f"/Length {len(data)} /Filter /FlateDecode")
    return head + b"\nstream\n" + data + b"\nendstream"


def _information(title: str, number: int, seal: Seal) -> bytes:
    shown = seal(number, title.encode("latin-1", "replace"))
    return _dictionary(f"/Title <{shown.hex()}> /Producer <{seal(number, b'Laufzettel').hex()}>")


def _content(lines: Page) -> bytes:
    start = f"BT /F1 11 Tf {_LEADING_POINTS} TL {_LEFT_POINTS} {_TOP_POINTS} Td".encode()
    shown = [b"(" + _escaped(line) + b") Tj T*" for line in lines[:LINES_A_PAGE]]
    return b"\n".join([start, *shown, b"ET"])


def _escaped(line: str) -> bytes:
    raw = line.encode("cp1252", "replace")
    return raw.replace(b"\\", b"\\\\").replace(b"(", b"\\(").replace(b")", b"\\)")


@dataclass(slots=True)
class _Body:
    data: bytearray
    offsets: list[int]


def _assembled(objects: list[bytes], trailer: str) -> bytes:
    body = _Body(bytearray(_HEADER), [])
    for number, content in enumerate(objects, start=1):
        body.offsets.append(len(body.data))
        body.data += f"{number} 0 obj\n".encode() + content + b"\nendobj\n"
    start = len(body.data)
    rows = "".join(f"{offset:010d} 00000 n \n" for offset in body.offsets)
    size = len(objects) + 1
    body.data += f"xref\n0 {size}\n0000000000 65535 f \n{rows}".encode()
    body.data += f"trailer\n<< /Size {size} {trailer} >>\nstartxref\n{start}\n%%EOF\n".encode()
    return bytes(body.data)

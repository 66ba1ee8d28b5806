"""The words of an office document, in reading order."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from jobs.steps import media
from jobs.steps.office_parts import Handlers, Parts, UnreadableError, walk

Write = Callable[[str], None]
_BREAKS = {"tab": "\t", "br": "\n", "cr": "\n", "noBreakHyphen": "\u2011", "line-break": "\n"}
_BLOCKS = frozenset({"p", "h", "tr"})
# Repeated blanks are written as a number; a hostile one must not become a gigabyte.
_BLANKS_LIMIT = 1000


def write_text(parts: Parts, media_type: str, write: Write) -> None:
    """Write all text of the document; raises ``UnreadableError`` where it is none of its type."""
    match media_type:
        case media.DOCX:
            _write_parts(parts, ["word/document.xml"], r"word/(?:foot|end)notes\.xml", write)
        case media.PPTX:
            _write_parts(parts, [], r"ppt/(?:slides|notesSlides)/[^/]+\.xml", write)
        case media.XLSX:
            _write_sheets(parts, write)
        case _:
            _write_open_document(parts, write)


def _write_parts(parts: Parts, needed: list[str], pattern: str, write: Write) -> None:
    names = [*needed, *(name for name in parts.named(pattern) if name not in needed)]
    if not names or not parts.names.issuperset(needed):
        raise UnreadableError("damaged")
    for name in names:
        walk(parts, name, _ooxml(write))


def _ooxml(write: Write) -> Handlers:
    """In OOXML only ``t`` elements hold text; all else between elements is layout."""
    inside: list[str] = []

    def start(tag: str, _: Mapping[str, str]) -> None:
        if tag == "t":
            inside.append(tag)
        elif tag in _BREAKS:
            write(_BREAKS[tag])

    def end(tag: str) -> None:
        if tag == "t" and inside:
            inside.pop()
        elif tag == "p":
            write("\n")

    return Handlers(start=start, end=end, text=lambda text: write(text) if inside else None)


def _write_open_document(parts: Parts, write: Write) -> None:
    if "content.xml" not in parts.names:
        raise UnreadableError("damaged")
    depth: list[str] = []

    def start(tag: str, attributes: Mapping[str, str]) -> None:
        if tag in {"p", "h"}:
            depth.append(tag)
        elif tag in _BREAKS:
            write(_BREAKS[tag])
        elif tag == "s":
            write(" " * _blanks(attributes.get("c", "1")))

    def end(tag: str) -> None:
        if tag in {"p", "h"} and depth:
            depth.pop()
            write("\n")

    def text(words: str) -> None:
        if depth:
            write(words)

    walk(parts, "content.xml", Handlers(start=start, end=end, text=text))


def _blanks(count: str) -> int:
    return min(int(count), _BLANKS_LIMIT) if count.isascii() and count.isdigit() else 1


def _write_sheets(parts: Parts, write: Write) -> None:
    sheets = parts.named(r"xl/worksheets/[^/]+\.xml")
    if not sheets:
        raise UnreadableError("damaged")
    shared = list(_shared_strings(parts))
    for name in sheets:
        walk(parts, name, _Sheet(shared, write).handlers())


def _shared_strings(parts: Parts) -> Iterator[str]:
    if "xl/sharedStrings.xml" not in parts.names:
        return
    strings: list[str] = []
    words: list[str] = []
    inside: list[str] = []

    def start(tag: str, _: Mapping[str, str]) -> None:
        if tag in {"t", "rPh"}:
            inside.append(tag)

    def end(tag: str) -> None:
        if tag in {"t", "rPh"} and inside:
            inside.pop()
        elif tag == "si":
            strings.append("".join(words))
            words.clear()

    def text(part: str) -> None:
        # Phonetic hints (rPh) repeat what the words say.
        if inside == ["t"]:
            words.append(part)

    walk(parts, "xl/sharedStrings.xml", Handlers(start=start, end=end, text=text))
    yield from strings


class _Sheet:
    """One sheet as lines of cells, parted by tabs."""

    def __init__(self, shared: list[str], write: Write) -> None:
        self._shared, self._write = shared, write
        self._kind, self._words, self._reading = "", "", False
        self._is_first = True

    def handlers(self) -> Handlers:
        return Handlers(start=self._start, end=self._end, text=self._text)

    def _start(self, tag: str, attributes: Mapping[str, str]) -> None:
        if tag == "row":
            self._is_first = True
        elif tag == "c":
            self._kind, self._words = attributes.get("t", ""), ""
        elif tag in {"v", "t"}:
            self._reading = True

    def _text(self, text: str) -> None:
        if self._reading:
            self._words += text

    def _end(self, tag: str) -> None:
        if tag in {"v", "t"}:
            self._reading = False
        elif tag == "c":
            self._write(("" if self._is_first else "\t") + self._cell())
            self._is_first = False
        elif tag == "row":
            self._write("\n")

    def _cell(self) -> str:
        if self._kind != "s":
            return self._words
        number = self._words.strip()
        known = number.isascii() and number.isdigit() and int(number[:9]) < len(self._shared)
        return self._shared[int(number)] if known else ""

"""The words of a web page, without its markup, scripts and styles."""

from __future__ import annotations

import re
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path

_HIDDEN = frozenset({"script", "style", "template", "noscript", "svg", "math"})
_BLOCKS = frozenset({
    "address", "article", "aside", "blockquote", "br", "dd", "div", "dl", "dt", "figcaption",
    "figure", "footer", "form", "h1", "h2", "h3", "h4", "h5", "h6", "header", "hr", "li", "main",
    "nav", "ol", "option", "p", "pre", "section", "table", "title", "tr", "ul",
})  # fmt: skip
_CHARSET = re.compile(
    rb"<meta[^>]{0,200}?charset\s*=\s*[\"']?\s*([A-Za-z0-9_:.-]{1,40})", re.IGNORECASE
)
_BLANKS = re.compile(r"\s+")
_HEAD_BYTES = 4096


def declared_charset(path: Path) -> str:
    """The character set that the page names for itself in its first bytes, or ""."""
    with path.open("rb") as file:
        found = _CHARSET.search(file.read(_HEAD_BYTES))
    return found[1].decode("ascii") if found else ""


class TextOfPage(HTMLParser):
    """Feed it a page in pieces; it writes the text, a line a block."""

    def __init__(self, write: Callable[[str], None]) -> None:
        super().__init__(convert_charrefs=True)
        self._write = write
        self._hidden = 0
        self._line: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:  # noqa: ARG002
        if tag in _HIDDEN:
            self._hidden += 1
        elif tag in _BLOCKS:
            self._end_line()
        elif tag in {"td", "th"}:
            self._line.append("\t" if self._line else "")

    def handle_endtag(self, tag: str) -> None:
        if tag in _HIDDEN:
            self._hidden = max(0, self._hidden - 1)
        elif tag in _BLOCKS:
            self._end_line()

    def handle_data(self, data: str) -> None:
        if not self._hidden:
            self._line.append(_BLANKS.sub(" ", data))

    def close(self) -> None:
        super().close()
        self._end_line()

    def _end_line(self) -> None:
        if line := "".join(self._line).strip():
            self._write(f"{line}\n")
        self._line.clear()

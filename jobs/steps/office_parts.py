"""Office documents (OOXML, OpenDocument): their parts and texts, read bounded and streaming."""

from __future__ import annotations

import re
import zipfile
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO
from xml.parsers import expat

from jobs.steps import media

TOO_LARGE = "too large unpacked"
_CHUNK_BYTES = 64 * 1024
_NUMBER = re.compile(r"(\d+)")
_SEPARATOR = "\x1f"


class UnreadableError(ValueError):
    """The document can't be read; the words say why."""


@dataclass(slots=True)
class Parts:
    """The parts of an open document. Reading counts what is unpacked, whatever is announced."""

    archive: zipfile.ZipFile
    limit_bytes: int
    unpacked_bytes: int = 0
    names: frozenset[str] = field(default_factory=frozenset)

    def chunks(self, name: str) -> Iterator[bytes]:
        """One part's bytes, until the document's whole allowance is used up."""
        with self.archive.open(name) as part:
            while chunk := self._read(part):
                yield chunk

    def named(self, pattern: str) -> list[str]:
        """The parts whose whole name matches, in the order in which people number them."""
        found = [name for name in self.names if re.fullmatch(pattern, name)]
        return sorted(found, key=_by_number)

    def _read(self, part: IO[bytes]) -> bytes:
        chunk = part.read(_CHUNK_BYTES)
        self.unpacked_bytes += len(chunk)
        if self.unpacked_bytes > self.limit_bytes:
            raise UnreadableError(TOO_LARGE)
        return chunk


@contextmanager
def opened(path: Path, *, limit_bytes: int) -> Iterator[Parts]:
    """The open document; raises ``UnreadableError`` with the reason in words."""
    # An office document with a password is no ZIP but an OLE container around one.
    if media.found(path) == media.OLE:
        raise UnreadableError("encrypted")
    try:
        with zipfile.ZipFile(path) as archive:
            infos = archive.infolist()
            if sum(info.file_size for info in infos) > limit_bytes:
                raise UnreadableError(TOO_LARGE)
            names = frozenset(info.filename for info in infos)
            yield Parts(archive=archive, limit_bytes=limit_bytes, names=names)
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, KeyError) as error:
        raise UnreadableError("damaged") from error
    except RuntimeError as error:
        # What zipfile raises for an entry with a password.
        raise UnreadableError("encrypted") from error


@dataclass(slots=True)
class Handlers:
    """What to do at elements (by local name) and at the characters between them."""

    start: Callable[[str, Mapping[str, str]], None] = lambda _name, _attributes: None
    end: Callable[[str], None] = lambda _name: None
    text: Callable[[str], None] = lambda _text: None


def walk(parts: Parts, name: str, handlers: Handlers) -> None:
    """Read one XML part through; no entity is ever declared, no other file is ever read."""
    parser = expat.ParserCreate(namespace_separator=_SEPARATOR)
    parser.buffer_text = True
    parser.StartElementHandler = lambda tag, attributes: handlers.start(
        local(tag), {local(key): value for key, value in attributes.items()}
    )
    parser.EndElementHandler = lambda tag: handlers.end(local(tag))
    parser.CharacterDataHandler = handlers.text
    parser.StartDoctypeDeclHandler = _refuse_doctype
    try:
        for chunk in parts.chunks(name):
            parser.Parse(chunk)
        parser.Parse(b"", True)  # noqa: FBT003 - expat takes no keyword here
    except expat.ExpatError as error:
        raise UnreadableError("damaged") from error


def local(tag: str) -> str:
    """A name without its namespace."""
    return tag.rpartition(_SEPARATOR)[2]


def links_outside(parts: Parts) -> bool:
    """Whether the document would have something loaded from elsewhere (links to click aside)."""
    found: list[str] = []

    def relationship(tag: str, attributes: Mapping[str, str]) -> None:
        if tag == "Relationship" and is_loaded_from_outside(attributes):
            found.append(attributes.get("Type", ""))

    def reference(tag: str, attributes: Mapping[str, str]) -> None:
        if tag in ODF_LOADING and is_outside(attributes.get("href", "")):
            found.append(tag)

    for name in parts.named(r".*\.rels"):
        walk(parts, name, Handlers(start=relationship))
    for name in parts.named(r"(?:content|styles)\.xml"):
        walk(parts, name, Handlers(start=reference))
    return bool(found)


ODF_LOADING = frozenset({
    "image", "object", "object-ole", "plugin", "floating-frame", "section-source", "table-source",
    "fill-image", "background-image", "audio", "sound", "cell-range-source", "dde-source",
})  # fmt: skip


def is_loaded_from_outside(attributes: Mapping[str, str]) -> bool:
    """Whether a relationship of an OOXML document is loaded, not only clicked."""
    outside = attributes.get("TargetMode", "").lower() == "external"
    return outside and not attributes.get("Type", "").endswith("/hyperlink")


def is_outside(href: str) -> bool:
    """Whether a reference of an OpenDocument leaves the package."""
    return ":" in href.split("/", 1)[0] or href.startswith(("/", "../", "\\"))


def _by_number(name: str) -> list[tuple[int, str]]:
    return [(int(p), "") if p.isdigit() else (-1, p) for p in _NUMBER.split(name)]


def _refuse_doctype(*_: object) -> None:
    raise UnreadableError("declares XML entities")

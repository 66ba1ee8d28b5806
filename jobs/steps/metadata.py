"""What a document says of itself: type, pages, title, size of a picture; as canonical JSON."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from jobs.steps import charsets, media, office_parts, pdf_pages
from jobs.steps.kinds import ChildTask, Hopeless, Made, Said, StepKind

_FILE = "metadata.json"
_VALUE_LIMIT = 1000
_CORE = {
    "title": "title",
    "creator": "author",
    "initial-creator": "author",
    "subject": "subject",
    "created": "created",
    "creation-date": "created",
    "modified": "modified",
    "date": "modified",
}
_PDF = {
    "Title": "title",
    "Author": "author",
    "Subject": "subject",
    "Creator": "program",
    "CreationDate": "created",
    "ModDate": "modified",
}
Facts = dict[str, str | int]

KIND = StepKind(use="metadata", release=1, target=f"{__name__}:run")


def run(task: ChildTask) -> Said:
    """Write what is known; for a type that we can't look into, that is its type and size."""
    wanted = task.media_type or media.found(task.input_path) or media.UNKNOWN
    facts: Facts = {"media_type": wanted, "size": task.input_path.stat().st_size}
    try:
        facts |= _facts(task, wanted)
    except (pdf_pages.UnreadableError, office_parts.UnreadableError) as error:
        return Hopeless(reason=str(error))
    body = json.dumps(facts, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    (task.folder / _FILE).write_text(body, encoding="utf-8")
    return (Made(file=_FILE, media_type=media.JSON),)


def _facts(task: ChildTask, wanted: str) -> Facts:
    if wanted == media.PDF:
        return _of_pdf(task.input_path)
    if wanted in media.OFFICE:
        return _of_office(task.input_path, task.limits.unpacked_bytes)
    if wanted.startswith("image/") and wanted != "image/svg+xml":
        return _of_picture(task.input_path)
    if wanted.startswith("text/"):
        return _of_text(task.input_path)
    return {}


def _of_pdf(path: Path) -> Facts:
    with pdf_pages.opened(path) as document:
        # A page tree may claim any number of pages: the first one has to be there.
        document[0].close()
        facts: Facts = {"pages": len(document)}
        for key, value in document.get_metadata_dict(skip_empty=True).items():
            if key in _PDF:
                facts[_PDF[key]] = _bounded(value)
        return facts


def _of_office(path: Path, limit_bytes: int) -> Facts:
    facts: Facts = {}
    reading: list[str] = []

    def start(tag: str, _: Mapping[str, str]) -> None:
        reading.append(tag)

    def end(_: str) -> None:
        reading.pop()

    def text(words: str) -> None:
        if key := _CORE.get(reading[-1]):
            facts[key] = _bounded(f"{facts.get(key, '')}{words}")

    with office_parts.opened(path, limit_bytes=limit_bytes) as parts:
        for name in parts.named(r"docProps/core\.xml|meta\.xml"):
            handlers = office_parts.Handlers(start=start, end=end, text=text)
            office_parts.walk(parts, name, handlers)
    return facts


def _of_picture(path: Path) -> Facts:
    from PIL import Image, UnidentifiedImageError

    Image.MAX_IMAGE_PIXELS = None
    try:
        with Image.open(path) as image:
            return {"width": image.width, "height": image.height, "colours": image.mode}
    except (UnidentifiedImageError, SyntaxError, ValueError) as error:
        raise pdf_pages.UnreadableError("damaged") from error


def _of_text(path: Path) -> Facts:
    try:
        return {"charset": charsets.shown(charsets.guess(path))}
    except charsets.NotTextError:
        return {}


def _bounded(value: str) -> str:
    plain = value.replace("\0", "").encode("utf-8", "replace").decode()
    return plain[:_VALUE_LIMIT]

"""The text of a document, as UTF-8, always whole or marked as cut."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import IO

from jobs.steps import charsets, html_text, media, office_parts, office_text, pdf_pages
from jobs.steps.child import too_large
from jobs.steps.kinds import ChildTask, Field, Hopeless, Made, Said, StepKind

_FILE = "text.txt"
_EXTERNAL = "external links not loaded"
_PLAIN_TYPES = ("text/*", media.JSON, "application/xml")

KIND = StepKind(
    use="text",
    release=1,
    target=f"{__name__}:run",
    media_types=(media.PDF, *media.OFFICE, *_PLAIN_TYPES),
    fields={"pages": Field("number", default=10_000, least=1, most=100_000)},
)


class _TooMuchError(ValueError):
    """The text passes the output limit."""


@dataclass(slots=True)
class _Sink:
    """Where the text goes: a file, with a limit."""

    file: IO[str]
    limit_bytes: int
    written_bytes: int = field(default=0)

    def write(self, text: str) -> None:
        self.written_bytes += len(text.encode())
        if self.written_bytes > self.limit_bytes:
            raise _TooMuchError
        self.file.write(text)


def run(task: ChildTask) -> Said:
    """Write the document's text; the result is one file, or the reason why there is none."""
    reader = _reader(task.media_type)
    try:
        with (task.folder / _FILE).open("w", encoding="utf-8", newline="") as file:
            note = reader(task, _Sink(file=file, limit_bytes=task.limits.output_bytes).write)
    except (
        pdf_pages.UnreadableError,
        office_parts.UnreadableError,
        charsets.NotTextError,
    ) as error:
        return Hopeless(reason=str(error))
    except _TooMuchError:
        return Hopeless(reason=too_large(task.limits))
    return (Made(file=_FILE, media_type=media.PLAIN, note=note),)


_Write = Callable[[str], None]
_Reader = Callable[[ChildTask, _Write], str]


def _reader(media_type: str) -> _Reader:
    special: Mapping[str, _Reader] = {media.PDF: _pdf, media.HTML: _html}
    return special.get(media_type, _office if media_type in media.OFFICE else _plain)


def _pdf(task: ChildTask, write: _Write) -> str:
    limit = min(int(str(task.parameters["pages"])), task.limits.pages)
    with pdf_pages.opened(task.input_path) as document:
        for text in pdf_pages.page_texts(document, limit=limit):
            write(f"{text}\n\f")
        return f"first {limit} pages" if len(document) > limit else ""


def _office(task: ChildTask, write: _Write) -> str:
    limit_bytes = task.limits.unpacked_bytes
    with office_parts.opened(task.input_path, limit_bytes=limit_bytes) as parts:
        office_text.write_text(parts, task.media_type, write)
    # A second opening has its own allowance: the parts are read again for another reason.
    with office_parts.opened(task.input_path, limit_bytes=limit_bytes) as parts:
        return _EXTERNAL if office_parts.links_outside(parts) else ""


def _plain(task: ChildTask, write: _Write) -> str:
    codec = charsets.guess(task.input_path)
    for piece in charsets.characters(task.input_path, codec):
        write(piece)
    return f"charset {charsets.shown(codec)}"


def _html(task: ChildTask, write: _Write) -> str:
    hint = html_text.declared_charset(task.input_path)
    codec = charsets.guess(task.input_path, hint=hint)
    page = html_text.TextOfPage(write)
    for piece in charsets.characters(task.input_path, codec):
        page.feed(piece)
    page.close()
    return f"charset {charsets.shown(codec)}"

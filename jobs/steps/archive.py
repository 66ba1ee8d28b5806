"""The listing of an archive. Nothing is ever unpacked."""

from __future__ import annotations

import zipfile

from jobs.steps import media
from jobs.steps.kinds import ChildTask, Hopeless, Made, Said, StepKind

_FILE = "listing.txt"

KIND = StepKind(use="archive", release=1, target=f"{__name__}:run", media_types=(media.ZIP,))


def run(task: ChildTask) -> Said:
    """One line an entry: size, name with escapes, and whether it points outside the folder."""
    try:
        with zipfile.ZipFile(task.input_path) as archive:
            lines = [_line(info) for info in archive.infolist()]
    except (zipfile.BadZipFile, EOFError, NotImplementedError):
        return Hopeless(reason="damaged")
    (task.folder / _FILE).write_text("".join(lines), encoding="utf-8")
    return (Made(file=_FILE, media_type=media.PLAIN),)


def _line(info: zipfile.ZipInfo) -> str:
    # The name as it was written: zipfile cuts one at a NUL and makes other slashes of its own.
    name = info.orig_filename
    mark = "\tpoints outside" if is_outside(name) else ""
    return f"{info.file_size}\t{escaped(name)}{mark}\n"


def escaped(name: str) -> str:
    """The name with everything visible: controls, marks of direction and backslashes escaped."""
    return "".join(c if c.isprintable() and c != "\\" else ascii(c)[1:-1] for c in name)


def is_outside(name: str) -> bool:
    """Whether an entry would land outside the folder that the archive is unpacked in."""
    parts = name.replace("\\", "/").split("/")
    return name.startswith(("/", "\\")) or ".." in parts or ":" in parts[0] or "\0" in name

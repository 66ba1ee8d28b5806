"""A program of the operator's: a list of arguments, never a shell."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
from collections.abc import Mapping
from pathlib import Path

from jobs.steps import media
from jobs.steps.kinds import (
    ANY_TYPE,
    ChildTask,
    Field,
    Hopeless,
    Made,
    Postponed,
    Said,
    StepKind,
)

_WORDS_LIMIT = 200
_OUTPUT_HOLE = "{output}"
_ENVIRONMENT = {"LC_ALL": "C.UTF-8", "PATH": "/usr/local/bin:/usr/bin:/bin"}

KIND = StepKind(
    use="command",
    release=1,
    target=f"{__name__}:run",
    fields={
        "run": Field("list"),
        "timeout": Field("duration", default=60, least=1, most=24 * 3600),
        "memory": Field("size", default=1024**3, least=16 * 1024**2),
        "types": Field("list", default=ANY_TYPE),
        "produces": Field("text", default=""),
        "permanent": Field("list", default=()),
    },
)


def run(task: ChildTask) -> Said:
    """Run the program; the artifact is what it wrote to ``{output}``, or to its output stream."""
    argv = words(task.parameters["run"])
    produces = str(task.parameters["produces"])
    suffix = media.extension(produces)
    output = task.folder / f"output{suffix}"
    source = _offer(task)
    holes = {"{input}": str(source), _OUTPUT_HOLE: str(output)}
    code, last_words = _execute([_filled(word, holes) for word in argv], task.folder, output)
    source.unlink(missing_ok=True)
    if code is None:
        return Postponed(reason=last_words)
    if code != 0:
        reason = _failure(code, last_words)
        return (
            Hopeless(reason)
            if str(code) in words(task.parameters["permanent"])
            else Postponed(reason)
        )
    return _made(output, produces)


def words(value: object) -> tuple[str, ...]:
    """A list parameter as what it is."""
    return tuple(str(word) for word in value) if isinstance(value, tuple) else ()


def _offer(task: ChildTask) -> Path:
    """The input under a name that programs understand, so that no program can change it."""
    source = task.folder / f"input{media.extension(task.media_type)}"
    try:
        os.close(os.open(task.input_path, os.O_WRONLY))
    except OSError:
        source.symlink_to(task.input_path)
    else:
        shutil.copyfile(task.input_path, source)
    return source


def _execute(argv: list[str], folder: Path, output: Path) -> tuple[int | None, str]:
    errors = folder / "errors"
    to_stream = not any(str(output) in word for word in argv)
    with (
        errors.open("w+b") as stderr,
        (output if to_stream else Path("/dev/null")).open("wb") as out,
    ):
        try:
            process = subprocess.run(
                argv,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=stderr,
                cwd=folder,
                env={**_ENVIRONMENT, "HOME": str(folder), "TMPDIR": str(folder)},
                check=False,
            )
        except OSError as error:
            return None, f"{Path(argv[0]).name} can't be started: {error.strerror}"
        stderr.seek(max(0, stderr.tell() - 4 * _WORDS_LIMIT))
        return process.returncode, _shown(stderr.read(), str(folder))


def _filled(word: str, holes: Mapping[str, str]) -> str:
    for hole, value in holes.items():
        word = word.replace(hole, value)
    return word


def _shown(errors: bytes, folder: str) -> str:
    lines = errors.decode("utf-8", "replace").replace(f"{folder}/", "").split("\n")
    last = next((line for line in reversed(lines) if line.strip()), "")
    return "".join(c if c.isprintable() else " " for c in last).strip()[:_WORDS_LIMIT]


def _failure(code: int, last_words: str) -> str:
    how = f"ended by {signal.Signals(-code).name}" if code < 0 else f"exit status {code}"
    return f"{how}: {last_words}" if last_words else how


def _made(output: Path, produces: str) -> Said:
    """What says ok and makes nothing, or makes something else, has made nothing."""
    nothing = Postponed(reason="no output", is_last_chance=True)
    if output.is_symlink() or not output.is_file() or output.stat().st_size == 0:
        return nothing
    content = media.found(output)
    if produces and (media.contradicts(content, produces) or _is_missing(content, produces)):
        return nothing
    return (Made(file=output.name, media_type=produces or content or media.UNKNOWN),)


def _is_missing(content: str, produces: str) -> bool:
    """Types that can be told from their first bytes have to show it."""
    return not content and produces in {media.PDF, media.PNG, "image/jpeg", *media.OFFICE}

"""What holds for every command: outputs that take any name, and machines that fail in words."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from app.cli.screen import FAILED, WRONG


def guarded(command: Callable[[], None]) -> None:
    """Run a command; what the machine refuses ends it in one line and with status 1."""
    _open_outputs()
    if not all(_is_text(argument) for argument in sys.argv):
        print("error: an argument is not UTF-8 → type it in UTF-8", file=sys.stderr)
        sys.exit(WRONG)
    try:
        command()
        sys.stdout.flush()
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        what = error.strerror or type(error).__name__
        print(f"error: {where}{what} → mend that, and do it again", file=sys.stderr)
        _give_up_output()
        sys.exit(FAILED)


def _open_outputs() -> None:
    """Names come from everywhere: what a terminal cannot show is written as an escape."""
    if sys.stdout is None:  # the shell closed it
        sys.stdout = Path(os.devnull).open("w", encoding="utf-8")  # noqa: SIM115 - for good
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            encoding = "utf-8" if stream.encoding.lower().startswith(("ascii", "ansi")) else None
            stream.reconfigure(encoding=encoding, errors="backslashreplace")


def _is_text(argument: str) -> bool:
    # Bytes that were no text came in as lone surrogates.
    return not any("\ud800" <= letter <= "\udfff" for letter in argument)


def _give_up_output() -> None:
    """A full output would fail once more when the interpreter flushes it."""
    with suppress(OSError, ValueError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)

"""Commands as a person types them, and ``run`` as a process that they find."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.crash.zygotes import shared_zygote

ROOT = Path(__file__).parents[1]
START = "from app.cli import main; main()"
Ended = subprocess.CompletedProcess[str]


def laufzettel(*arguments: str, folder: Path, stdin: str = "", **environ: str) -> Ended:
    """Run a command in a process of its own, forked from one that has imported all of it."""
    with tempfile.TemporaryDirectory(prefix="laufzettel-command-") as made:
        said, complained, told = (Path(made, name) for name in ("out", "err", "in"))
        told.write_text(stdin)
        order = {"argv": arguments, "environ": environment(**environ), "folder": str(folder)}
        files = {"stdin": str(told), "log": str(said), "errors": str(complained)}
        code = shared_zygote().order({**order, **files}).wait()
        return Ended(arguments, code, said.read_text(), complained.read_text())


def document(*arguments: str, folder: Path, **environ: str) -> Any:
    """The JSON that a command prints; it must have done what was asked."""
    ended = laufzettel(*arguments, "--json", folder=folder, **environ)
    assert ended.returncode == 0, ended.stderr
    return json.loads(ended.stdout)


def environment(**more: str) -> dict[str, str]:
    clean = {key: value for key, value in os.environ.items() if not key.startswith("LAUFZETTEL_")}
    return {**clean, "PYTHONPATH": str(ROOT), **more}


@contextmanager
def started(folder: Path, *, store: str = "store.db") -> Iterator[subprocess.Popen[str]]:
    """``laufzettel run`` in this folder; ended by SIGTERM on leaving, and in order."""
    process = subprocess.Popen(
        [sys.executable, "-c", START, "run"],
        cwd=folder,
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    try:
        _await(process, folder / f"{store}.process")
        yield process
    finally:
        if process.poll() is None:
            process.send_signal(signal.SIGTERM)
        output, _ = process.communicate(timeout=60)
    assert process.returncode == 0, output


def _await(process: subprocess.Popen[str], path: Path) -> None:
    ends = time.monotonic() + 60
    while not path.exists():
        assert process.poll() is None, process.communicate()[0]
        assert time.monotonic() < ends, "it did not start"
        try:
            process.wait(0.02)
        except subprocess.TimeoutExpired:
            continue

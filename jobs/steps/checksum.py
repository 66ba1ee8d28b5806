"""Digests of the bytes, one a line. No file can hurt this step: it runs in the worker itself."""

from __future__ import annotations

import hashlib

from jobs.steps import media
from jobs.steps.kinds import ChildTask, Field, Hopeless, Made, Said, StepKind

_FILE = "checksum.txt"
_CHUNK_BYTES = 1024 * 1024
_ALGORITHMS = ("sha256", "sha512", "sha1", "md5")

KIND = StepKind(
    use="checksum",
    release=1,
    target=f"{__name__}:run",
    fields={"algorithms": Field("list", default=("sha256",), choices=_ALGORITHMS)},
    place="worker",
    takes_any_bytes=True,
)


def run(task: ChildTask) -> Said:
    """Read the file once, in constant memory; bytes that are not those accepted are an error."""
    names = task.parameters["algorithms"]
    wanted = [names] if isinstance(names, str) else list(names) if isinstance(names, tuple) else []
    digests = {name: hashlib.new(name, usedforsecurity=False) for name in {*wanted, "sha256"}}
    with task.input_path.open("rb") as file:
        while chunk := file.read(_CHUNK_BYTES):
            for digest in digests.values():
                digest.update(chunk)
    if digests["sha256"].hexdigest() != task.input_sha256:
        return Hopeless(reason="stored bytes do not match their hash")
    lines = [f"{name} {digests[name].hexdigest()}\n" for name in wanted]
    (task.folder / _FILE).write_text("".join(lines), encoding="ascii")
    return (Made(file=_FILE, media_type=media.PLAIN),)

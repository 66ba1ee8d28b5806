"""The exchange of an ``http`` step: bytes out, bytes in, nothing looked into.

It stands apart from its kind, so that the sandbox loads no HTTP.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from domain.outcomes import Again
from domain.schedule import retry_after
from jobs.outbound import named_host
from jobs.steps import media
from jobs.steps.kinds import ChildTask, Hopeless, Made, NotApplicable, Postponed, Said
from jobs.tools import (
    AddressRefused,
    Answer,
    Broken,
    CertificateTrouble,
    ConnectFailed,
    Credentials,
    Garbled,
    Limits,
    Request,
    SignInFailed,
    Stopped,
    Target,
    TimedOut,
    TooLarge,
    Tools,
    Trouble,
    Upload,
    Whole,
)

_PIECE_BYTES = 1 << 16
_MIB = 1 << 20
_TYPE = re.compile(r"[a-z0-9.+-]{1,60}/[a-z0-9.+-]{1,100}")
_NOT_FOR_THIS = 415
_PERMANENT = frozenset({400, 410, 413, 422})


@dataclass(frozen=True, slots=True)
class Poster:
    """Posts for one job. ``credentials`` are ``None`` where the step's ``auth`` is not known."""

    job_id: str
    credentials: Credentials | None
    tools: Tools

    def __call__(self, task: ChildTask) -> Said | NotApplicable | Again:
        """One request with the job's id as its key: a repeat is known as one by the service."""
        if self.credentials is None:
            return Again("the configuration does not hold its auth any more", counted=False)
        proof = self.credentials.headers()
        if isinstance(proof, SignInFailed):
            return Again(proof.reason)
        url, timeout_s = str(task.parameters["url"]), float(_number(task, "timeout_s"))
        headers = (
            ("content-type", task.media_type or media.UNKNOWN),
            ("idempotency-key", self.job_id),
            ("accept-encoding", "identity"),
            *proof,
        )
        with task.input_path.open("rb") as file:
            body = Upload(_pieces(file), task.input_path.stat().st_size)
            with self.tools.http.open(
                Request("POST", url, headers, body),
                target=Target((named_host(url),) if task.parameters["private"] else ()),
                limits=Limits(total_s=timeout_s, span_s=timeout_s),
                pulse=self._goes_on,
            ) as answer:
                if isinstance(answer, Trouble):
                    return _failed(answer)
                return self._judged(answer, task)

    def _goes_on(self) -> bool:
        return self.tools.progress(0, None) is None

    def _judged(self, answer: Answer, task: ChildTask) -> Said | NotApplicable | Again:
        status = answer.status
        if 200 <= status < 300:
            return _kept(answer, task)
        if status == _NOT_FOR_THIS:
            return NotApplicable(
                reason=f"answered {status}: not for {task.media_type or media.UNKNOWN}"
            )
        if status in _PERMANENT:
            return Hopeless(reason=f"answered {status}")
        if 300 <= status < 400:
            return Again(f"answered {status}: a redirect, which is not followed; mend url")
        told = dict(answer.headers).get("retry-after", "")
        return Again(f"answered {status}", wait_s=retry_after(told, self.tools.clock.now()))


def _pieces(file: BinaryIO) -> Iterator[bytes]:
    while piece := file.read(_PIECE_BYTES):
        yield piece


def _number(task: ChildTask, key: str) -> int:
    value = task.parameters[key]
    return value if isinstance(value, int) else 0


def _kept(answer: Answer, task: ChildTask) -> Said | Again:
    output, limit_bytes = task.folder / "answer", _number(task, "max_size_bytes")
    with output.open("wb") as file:
        poured = answer.pour(file.write, limit_bytes=limit_bytes)
    match poured:
        case Whole() if output.stat().st_size == 0:
            return Postponed(reason="the answer is empty", is_last_chance=True)
        case Whole():
            return (Made(output.name, _type(answer, task, output)),)
        case TooLarge():
            return Hopeless(reason=f"answer larger than {limit_bytes / _MIB:.4g} MiB")
        case Garbled(reason):
            return Again(f"answer cannot be unpacked: {reason}")
        case broken:
            return _failed(broken)


def _type(answer: Answer, task: ChildTask, output: Path) -> str:
    """As the recipe says, else as the service says, else as the bytes show."""
    told = dict(answer.headers).get("content-type", "").partition(";")[0].strip().lower()
    said = told if _TYPE.fullmatch(told) else ""
    return str(task.parameters["produces"]) or said or media.found(output) or media.UNKNOWN


def _failed(trouble: Trouble) -> Again:
    """All of these are worth another try: the key makes it harmless."""
    match trouble:
        case AddressRefused(reason):
            return Again(f"address not allowed: {reason}")
        case CertificateTrouble(reason):
            return Again(f"certificate: {reason}")
        case ConnectFailed(reason):
            return Again(f"no connection: {reason}")
        case TimedOut():
            return Again("no whole answer within timeout")
        case Broken(reason=reason):
            return Again(f"broken off: {reason}")
        case Stopped():
            return Again("stopped", counted=False)

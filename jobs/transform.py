"""Transform: one step for one file, its outputs hashed and durably in the store of blobs."""

from __future__ import annotations

import errno
import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from app.artifacts import BlobsAwayError, MissingBlobError
from domain.outcomes import Again, Dead, Done
from domain.recipes import Step
from jobs.outbound import Fixed
from jobs.sandbox import Sandbox
from jobs.steps import Limits, NotApplicable, Output, StepTask, perform
from jobs.steps.posting import Poster
from jobs.tools import Credentials, Tools

_FULL = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})
_PIECE_BYTES = 1 << 20


@dataclass(frozen=True, slots=True)
class StepJob:
    """One step to do. ``media_type`` is what the source announced; ``attempt`` counts from 1.

    ``credentials`` are those of all steps, by the ``auth`` that is pinned: it holds no secret.
    """

    job_id: str
    step: Step
    input_sha256: str
    input_size_bytes: int
    media_type: str
    name: str
    attempt: int
    credentials: Mapping[str, Credentials] = field(default_factory=dict, repr=False)


@dataclass(frozen=True, slots=True)
class Made:
    """One output of a step; its bytes are in the store. ``note`` is for people."""

    name: str
    sha256: str
    size_bytes: int
    media_type: str
    note: str = ""


TransformOutcome = Done[tuple[Made, ...]] | Done[NotApplicable] | Again | Dead


def transform(job: StepJob, tools: Tools, sandbox: Sandbox) -> TransformOutcome:
    """Do the step; done means that its outputs survive a power cut."""
    try:
        return _performed(job, tools, sandbox)
    except OSError as error:
        if error.errno not in _FULL:
            raise
        return Again("disk full", counted=False)
    except MissingBlobError:
        return Again("the original is missing in the artifact store")
    except BlobsAwayError:
        return Again("the artifact store is not available", counted=False)


def _performed(job: StepJob, tools: Tools, sandbox: Sandbox) -> TransformOutcome:
    folder = tools.scratch / "outputs"
    folder.mkdir()
    task = StepTask(
        step=job.step,
        input_path=_input(job, tools),
        input_sha256=job.input_sha256,
        input_size_bytes=job.input_size_bytes,
        media_type=job.media_type,
        name=job.name,
        folder=folder,
        attempt=job.attempt,
    )
    performed = perform(task, limits=Limits(), sandbox=sandbox, post=_poster(job, tools))
    match performed:
        case Done(result=NotApplicable() as reason):
            return Done(reason)
        case Done(result=tuple(outputs)):
            return Done(tuple(_stored(output, tools) for output in outputs))
        case Again() | Dead():
            return performed
        case _:
            raise TypeError(type(performed))


def _poster(job: StepJob, tools: Tools) -> Poster:
    auth = str(dict(job.step.parameters).get("auth", ""))
    return Poster(job.job_id, job.credentials.get(auth) if auth else Fixed(), tools)


def _input(job: StepJob, tools: Tools) -> Path:
    local = tools.blobs.path_of(job.input_sha256)
    if local is not None:
        return local
    fetched = tools.scratch / "input"
    tools.blobs.fetch_to(job.input_sha256, fetched)
    return fetched


def _stored(output: Output, tools: Tools) -> Made:
    digest = hashlib.sha256()
    with output.path.open("rb") as file:
        while piece := file.read(_PIECE_BYTES):
            digest.update(piece)
    size_bytes = output.path.stat().st_size
    tools.blobs.put_file(output.path, digest.hexdigest())
    return Made(output.name, digest.hexdigest(), size_bytes, output.media_type, output.note)

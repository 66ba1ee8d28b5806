"""One attempt of a download, from the announced address to a durable blob."""

from __future__ import annotations

import errno
from contextlib import suppress
from pathlib import Path

from app.artifacts import BlobsAwayError
from domain.outcomes import Again, Dead, Done
from jobs.download.content import Received, contradiction, expected_type, note
from jobs.download.status import larger_than
from jobs.download.transfer import Transfer
from jobs.download.values import Downloaded, DownloadedOutcome, DownloadJob
from jobs.tools import Tools

_FULL = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})


def download(job: DownloadJob, tools: Tools) -> DownloadedOutcome:
    """Fetch, check and store; done means that the bytes survive a power cut.

    Memory is constant, the temporary file is always removed, and nothing is stored that speaks
    against the event.
    """
    if job.size_bytes is not None and job.size_bytes > job.settings.max_size_bytes:
        return Dead(larger_than(job.settings.max_size_bytes))
    path = tools.scratch / f"download-{job.attempt}"
    try:
        return _stored(job, tools, path)
    except OSError as error:
        if error.errno not in _FULL:
            raise
        return Again("disk full", counted=False)
    except BlobsAwayError:
        return Again("the artifact store is not available", counted=False)
    finally:
        with suppress(FileNotFoundError):
            path.unlink()


def _stored(job: DownloadJob, tools: Tools, path: Path) -> DownloadedOutcome:
    received = Transfer(job, tools, path).run()
    if not isinstance(received, Received):
        return received
    if (refusal := contradiction(job, received)) is not None:
        return refusal
    tools.blobs.put_file(path, received.sha256)
    media_type = expected_type(job) or received.media_type or "application/octet-stream"
    return Done(Downloaded(received.sha256, received.size_bytes, media_type, note(job, received)))

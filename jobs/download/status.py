"""What a source's answers and silences mean for a download."""

from __future__ import annotations

from datetime import datetime

from domain.outcomes import Again, Dead
from domain.schedule import retry_after
from jobs.download.values import DownloadJob
from jobs.tools import (
    AddressRefused,
    Answer,
    Broken,
    CertificateTrouble,
    ConnectFailed,
    Stopped,
    TimedOut,
    Trouble,
)

NOT_ALLOWED = "address not allowed"
# A lock may last for hours: asked again ever more seldom, at most every ten minutes.
_LONGEST_LOCK_WAIT_S = 600.0
_SERVER_ERROR = 500


def answered(answer: Answer, job: DownloadJob, *, now: datetime) -> Again | Dead:
    """The outcome of an answer that is neither the file nor a redirect."""
    asked_s = retry_after(dict(answer.headers).get("retry-after", ""), now)
    match answer.status:
        case 409 | 423:
            own_s = min(2.0 ** min(job.attempt, 20), _LONGEST_LOCK_WAIT_S)
            return Again(
                f"{answer.status} at the source: locked", counted=False, wait_s=asked_s or own_s
            )
        case 429 | 503:
            return Again(
                f"{answer.status} at the source",
                wait_s=asked_s,
                everyone=asked_s is not None,
                trouble=answer.status == 503,
            )
        case 403 | 410:
            return Again(f"{answer.status} at the source: not allowed, or the link has run out")
        case status:
            return Again(f"{status} at the source", wait_s=asked_s, trouble=status >= _SERVER_ERROR)


def troubled(trouble: Trouble) -> Again | Dead:
    """The outcome of a request that got no whole answer."""
    match trouble:
        case AddressRefused():
            return Dead(NOT_ALLOWED)
        case CertificateTrouble(reason=reason):
            return Again(f"certificate: {reason}", trouble=True)
        case ConnectFailed(reason=reason):
            return Again(f"no connection to the source: {reason}", trouble=True)
        case TimedOut():
            return Again("too slow", trouble=True)
        case Broken(reason=reason):
            return Again(f"no answer from the source: {reason}", trouble=True)
        case Stopped():
            return Again("stopped", counted=False)


def larger_than(limit_bytes: int) -> str:
    """The words for a file above the limit."""
    for unit, size_bytes in (("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)):
        if limit_bytes >= size_bytes and limit_bytes % size_bytes == 0:
            return f"larger than {limit_bytes // size_bytes} {unit}"
    return f"larger than {limit_bytes} bytes"

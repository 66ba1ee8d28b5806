"""An installation in a folder, served until it is killed: a process for tests that kill one."""

from __future__ import annotations

import sys
from pathlib import Path

from tests.installations import installed

if __name__ == "__main__":
    with installed(Path(sys.argv[1])) as running:
        print(running.server.url, flush=True)  # noqa: T201 - how the test learns the port
        sys.stdin.read()

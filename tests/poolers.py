"""A real pooler in transaction mode before a PostgreSQL server, where the system has one."""

from __future__ import annotations

import os
import pwd
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import sqlalchemy as sa

from tests.runtimes import until
from tests.servers import closed_port
from tests.stores import missing

SETTINGS = """
[databases]
* = host={host} user=postgres
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = {port}
unix_socket_dir =
auth_type = any
pool_mode = transaction
default_pool_size = 8
"""


@contextmanager
def pooled(url: str) -> Iterator[str]:
    """The address of the database by way of the pooler."""
    program = shutil.which("pgbouncer", path=f"{os.environ.get('PATH', '')}:/usr/sbin")
    if program is None:
        missing("PgBouncer is not installed: apt-get install pgbouncer")
        return
    address = sa.make_url(url)
    port = closed_port()
    # Not in pytest's folder, which only this user may enter.
    folder = Path(tempfile.mkdtemp(prefix="laufzettel-pool-"))
    settings = folder / "pgbouncer.ini"
    settings.write_text(SETTINGS.format(host=address.query["host"], port=port))
    folder.chmod(0o755)
    # It refuses to be root; the wheel of the server has made itself a user for the same reason.
    user = ["-u", pwd.getpwnam("pgserver").pw_name] if os.geteuid() == 0 else []
    with (folder / "pgbouncer.log").open("wb") as log:
        process = subprocess.Popen([program, *user, str(settings)], stdout=log, stderr=log)
    try:
        until(lambda: _listens(port))
        yield f"postgresql://postgres@127.0.0.1:{port}/{address.database}"
    finally:
        process.kill()
        process.wait()
        shutil.rmtree(folder)


def _listens(port: int) -> bool:
    with suppress(OSError):
        socket.create_connection(("127.0.0.1", port), 1).close()
        return True
    return False

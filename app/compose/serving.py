"""The listening half of a process: the application, its server, and what it may fetch."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field

from app.artifacts import Blobs
from app.clock import Clock, SystemDice
from app.compose import alerting
from app.compose.pinging import pinger
from app.config import Config
from app.ledger import Ledger
from app.store.engine import Store
from app.telemetry import Metrics, Traces
from app.web import Outside, create_server, create_web
from app.web.access import Access
from app.web.api.office import Office
from jobs.outbound import Outbound
from jobs.tools import Limits, Request, Target, Trouble, Whole

_LIMITS = Limits(total_s=10.0, span_s=10.0)
_ANSWER_BYTES = 64 << 10


@dataclass(frozen=True, slots=True)
class Parts:
    """What the listening half is built from; its owner closes them.

    ``port`` is one that several processes share; without it, it is the configured one alone.
    """

    config: Config
    store: Store
    ledger: Ledger
    blobs: Blobs
    clock: Clock
    metrics: Metrics
    user_agent: str
    port: int | None = None
    local_token: str = field(default="", repr=False)
    traces: Traces = field(default_factory=Traces)


class Serving:
    """Takes connections until it is stopped."""

    def __init__(self, parts: Parts) -> None:
        self.local_token = parts.local_token
        self._http = Outbound(clock=parts.clock, user_agent=parts.user_agent)
        fetch = _fetcher(self._http)
        self._web = create_web(
            config=parts.config,
            store=parts.store,
            ledger=parts.ledger,
            blobs=parts.blobs,
            clock=parts.clock,
            outside=Outside(
                metrics=parts.metrics,
                visit=lambda url: _ignored(fetch(url)),
                certificate=fetch,
                ping=pinger(parts.config, http=self._http, blobs=parts.blobs, clock=parts.clock),
                local_token=parts.local_token,
                traces=parts.traces,
            ),
        )
        self._alerting = _alerting(parts, self._http) if parts.config.alerts.notify else None
        self._server = create_server(self._web, parts.config, shared_port=parts.port)

    @property
    def url(self) -> str:
        """Where it listens."""
        return self._server.url

    @property
    def sign_in_code(self) -> str:
        """What is exchanged for a first token while nobody has access; "" once someone has."""
        return self._web.sign_in_code

    def start(self) -> None:
        """Begin to take connections; raises ``ServerError``."""
        self._server.start()
        if self._alerting is not None:
            self._alerting.start()

    def stop(self, *, grace_s: float) -> None:
        """Be not ready, take no more, and let running requests end."""
        self._server.stop(grace_s=grace_s)
        if self._alerting is not None:
            self._alerting.stop()
        self._web.flush()
        self._http.close()


def _alerting(parts: Parts, http: Outbound) -> alerting.Alerting:
    access = Access(parts.ledger, parts.clock, SystemDice())
    office = Office(
        parts.config,
        parts.store,
        parts.ledger,
        parts.blobs,
        parts.clock,
        access,
        sign_in=None,
        stopping=threading.Event(),
    )
    return alerting.Alerting(
        alerting.Parts(parts.config, parts.ledger, office, http, parts.blobs, parts.clock)
    )


def _fetcher(http: Outbound) -> Callable[[str], bytes | None]:
    """Fetches a small document from a public address; ``None`` if it does not come whole."""

    def fetch(url: str) -> bytes | None:
        pieces: list[bytes] = []
        request = Request("GET", url)
        with http.open(request, target=Target(), limits=_LIMITS, pulse=lambda: True) as answer:
            if isinstance(answer, Trouble) or not 200 <= answer.status < 300:
                return None
            ended = answer.pour(pieces.append, limit_bytes=_ANSWER_BYTES)
        return b"".join(pieces) if isinstance(ended, Whole) else None

    return fetch


def _ignored(answer: bytes | None) -> None:
    """That the address was called is all that counts."""
    del answer

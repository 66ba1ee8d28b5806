"""The web side: deliveries in, an API for operators and receivers, health."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from importlib.metadata import PackageNotFoundError, version

from litestar.datastructures import State

from app.artifacts import Blobs
from app.clock import Clock, Dice, SystemClock, SystemDice
from app.config import Config
from app.ledger import Ledger
from app.store import tokens
from app.store.engine import Store
from app.telemetry import Metrics, Traces
from app.web import health
from app.web.access import Access, SignIn, digest_of
from app.web.api import create_api
from app.web.api.office import Office, Pinged
from app.web.auth import Doorkeeper
from app.web.console import create_console
from app.web.console.comparison import Comparison
from app.web.console.glance import Glances
from app.web.front import Web
from app.web.gauges import Gauges
from app.web.health import Vitals
from app.web.hooks import Hooks, Parts
from app.web.proofs import primitives
from app.web.rest import create_rest
from app.web.server import Place, WebServer

__all__ = ["Outside", "Web", "create_server", "create_web"]


@dataclass(frozen=True, slots=True)
class Outside:
    """What the web side shares with the process around it.

    ``visit`` calls an address that a proven handshake names, ``certificate`` fetches a PEM from
    one; both check the address themselves. Without them such handshakes stay unanswered.
    ``ping`` sends a test message to a destination, if there is one of that name.
    ``local_token`` is what commands on this machine come in by, for as long as the process lives.
    """

    metrics: Metrics = field(default_factory=Metrics)
    dice: Dice = field(default_factory=SystemDice)
    visit: Callable[[str], None] | None = None
    certificate: Callable[[str], bytes | None] | None = None
    ping: Callable[[str], Pinged | None] | None = None
    local_token: str = field(default="", repr=False)
    traces: Traces = field(default_factory=Traces)


def create_web(  # noqa: PLR0913 - each is a seam that is filled by name
    *,
    config: Config,
    store: Store,
    ledger: Ledger,
    blobs: Blobs,
    clock: Clock,
    outside: Outside | None = None,
) -> Web:
    """The whole web side as one ASGI application.

    While nobody has access, ``sign_in_code`` of it is exchanged for a first token.
    """
    outside = outside or Outside()
    stopping = threading.Event()
    access = Access(ledger, clock, outside.dice)
    sign_in = None if _is_anyone_in(store, clock) else SignIn(access)
    hooks = Hooks(
        Parts(
            sources=config.sources,
            public_url=config.installation.public_url,
            store=store,
            ledger=ledger,
            clock=clock,
            metrics=outside.metrics,
            primitives=primitives(outside.certificate),
            visit=outside.visit,
            traces=outside.traces,
        )
    )
    office = Office(config, store, ledger, blobs, clock, access, sign_in, stopping, outside.ping)
    gauges = Gauges(store, outside.metrics, clock, config)
    local = digest_of(outside.local_token) if outside.local_token else ""
    state = State(
        {
            "office": office,
            "doorkeeper": Doorkeeper(store, ledger, clock, local),
            "comparison": Comparison(store, stopping),
            "glances": Glances(clock),
            "vitals": Vitals(store, ledger, outside.metrics, stopping, gauges),
        },
        deep_copy=False,
    )
    rest = create_rest(
        [*health.HANDLERS, create_api(), create_console()], state, version=_version()
    )
    return Web(hooks, rest, stopping, sign_in_code=sign_in.code if sign_in else "")


def create_server(web: Web, config: Config, *, shared_port: int | None = None) -> WebServer:
    """The server of this application at the configured address; nothing runs before ``start``.

    A ``shared_port`` is held by whoever started this process and others beside it.
    """
    place = config.installation
    port = place.listen_port if shared_port is None else shared_port
    at = Place(place.listen_host, port, place.tls, is_shared=shared_port is not None)
    return WebServer(web, at, SystemClock())


def _is_anyone_in(store: Store, clock: Clock) -> bool:
    with store.read() as connection:
        return tokens.exists(connection, int(clock.now().timestamp() * 1000))


def _version() -> str:
    try:
        return version("laufzettel")
    except PackageNotFoundError:
        return "0"

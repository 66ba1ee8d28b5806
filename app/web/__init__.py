"""The web side: deliveries in, an API for operators and receivers, health."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from app.artifacts import Blobs
from app.clock import Clock
from app.config import Config
from app.ledger import Ledger
from app.store.engine import Store
from app.telemetry import Metrics
from app.web.front import Web
from app.web.hooks import Hooks, Parts
from app.web.proofs import primitives

__all__ = ["Web", "create_web"]


def create_web(  # noqa: PLR0913 - each is a seam that is filled by name
    *,
    config: Config,
    store: Store,
    ledger: Ledger,
    blobs: Blobs,
    clock: Clock,
    metrics: Metrics | None = None,
    visit: Callable[[str], None] | None = None,
    certificate: Callable[[str], bytes | None] | None = None,
) -> Web:
    """The whole web side as one ASGI application.

    ``visit`` calls an address that a proven handshake names, ``certificate`` fetches a PEM from
    one; both check the address themselves. Without them such handshakes stay unanswered.
    """
    metrics = metrics or Metrics()
    hooks = Hooks(
        Parts(
            sources=config.sources,
            public_url=config.installation.public_url,
            store=store,
            ledger=ledger,
            clock=clock,
            metrics=metrics,
            primitives=primitives(certificate),
            visit=visit,
        )
    )
    del blobs
    return Web(hooks, _nothing, threading.Event())


async def _nothing(scope: Any, receive: Any, send: Any) -> None:
    del scope, receive
    await send({"type": "http.response.start", "status": 404, "headers": []})
    await send({"type": "http.response.body", "body": b""})

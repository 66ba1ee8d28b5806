"""The door of the web side: deliveries to the intake, everything else to the framework."""

from __future__ import annotations

import threading
from typing import Any

from app.web.hooks import PREFIX, Hooks
from app.web.hooks.body import Receive, Scope, Send


class Web:
    """The whole web side as one ASGI application."""

    def __init__(
        self, hooks: Hooks, rest: Any, stopping: threading.Event, *, sign_in_code: str = ""
    ) -> None:
        self.sign_in_code = sign_in_code
        self._hooks = hooks
        self._rest = rest
        self._stopping = stopping

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request, or follow the server's own beginning and end."""
        if scope["type"] == "http" and scope["path"].startswith(PREFIX):
            await self._hooks(scope, receive, send)
        elif scope["type"] == "lifespan":
            await self._live(receive, send)
        else:
            await self._rest(scope, receive, send)

    def stop_taking(self) -> None:
        """Be not ready from now on, and end what would stream for ever."""
        self._stopping.set()

    def flush(self) -> None:
        """Record now which deliveries were refused, instead of when the minute is over."""
        self._hooks.desk.refusals.flush()

    async def _live(self, receive: Receive, send: Send) -> None:
        while True:
            message = await receive()
            if message["type"] == "lifespan.startup":
                await send({"type": "lifespan.startup.complete"})
            else:
                self.flush()
                await send({"type": "lifespan.shutdown.complete"})
                return

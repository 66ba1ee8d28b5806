"""Having it stored, within the time that the source waits."""

from __future__ import annotations

import asyncio
from collections import deque
from concurrent.futures import Future
from typing import Any


class Bell:
    """Tells an event loop from other threads what has settled, many at a time.

    A commit settles all deliveries of its batch: the loop is woken once for them, not once each.
    """

    def __init__(self) -> None:
        self._settled: deque[asyncio.Future[None]] = deque()
        self._is_rung = False

    def ring(self, waiter: asyncio.Future[None]) -> None:
        """Let the waiter's loop know that it need not wait longer; from any thread."""
        self._settled.append(waiter)
        loop = waiter.get_loop()
        # The loop may be closed: whoever waited is gone with it.
        if not self._is_rung and not loop.is_closed():
            self._is_rung = True
            loop.call_soon_threadsafe(self._answer)

    def _answer(self) -> None:
        # Before the first is taken: what comes from now on may ring again, and is never missed.
        self._is_rung = False
        while self._settled:
            _set(self._settled.popleft())


async def settled(future: Future[Any], bell: Bell, *, timeout_s: float) -> bool:
    """Wait for the Ledger; whether it answered in time. The future itself is never cancelled."""
    loop = asyncio.get_running_loop()
    waiter = loop.create_future()
    future.add_done_callback(lambda _: bell.ring(waiter))
    timer = loop.call_later(timeout_s, _set, waiter)
    try:
        await waiter
    finally:
        timer.cancel()
    return future.done()


def _set(waiter: asyncio.Future[None]) -> None:
    if not waiter.done():
        waiter.set_result(None)

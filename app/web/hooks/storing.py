"""Having it stored, within the time that the source waits."""

from __future__ import annotations

import asyncio
from concurrent.futures import Future
from typing import Any


async def settled(future: Future[Any], *, timeout_s: float) -> bool:
    """Wait for the Ledger; whether it answered in time. The future itself is never cancelled."""
    loop = asyncio.get_running_loop()
    waiter = loop.create_future()
    future.add_done_callback(lambda _: _tell(loop, waiter))
    timer = loop.call_later(timeout_s, _set, waiter)
    try:
        await waiter
    finally:
        timer.cancel()
    return future.done()


def _tell(loop: asyncio.AbstractEventLoop, waiter: asyncio.Future[None]) -> None:
    # The loop may be closed: whoever waited is gone with it.
    if not loop.is_closed():
        loop.call_soon_threadsafe(_set, waiter)


def _set(waiter: asyncio.Future[None]) -> None:
    if not waiter.done():
        waiter.set_result(None)

"""Ending by a signal: an event is set, and what was begun is ended in order."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

_SIGNALS = (signal.SIGINT, signal.SIGTERM)


@contextmanager
def stopped(ended: threading.Event) -> Iterator[None]:
    """While inside, the first Ctrl-C or SIGTERM sets the event; a second one ends at once."""

    def end(number: int, _frame: FrameType | None) -> None:
        if ended.is_set():
            signal.signal(number, signal.SIG_DFL)
            signal.raise_signal(number)
        ended.set()

    before = {number: signal.signal(number, end) for number in _SIGNALS}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)

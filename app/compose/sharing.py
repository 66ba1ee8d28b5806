"""What a process has beside its halves when the store is shared: order, and word to the others."""

from __future__ import annotations

import threading
from collections.abc import Callable

from app.clock import Clock
from app.config import Installation
from app.ledger.sequencing import Sequencing
from app.store import notices
from app.store.engine import Store
from app.store.errors import StoreUnavailableError
from app.telemetry import log

# A notice takes a lock of the whole server for a moment, so a busy process says it this often.
_QUIET_S = 0.025
_TRY_AGAIN_S = 1.0
# How long a stop waits for the one who listens.
_LISTEN_S = 0.5


class Shared:
    """Gives the log its order while this process leads, tells others of due work, and listens.

    ``heard`` is called when another process says that work may be due; a process that does no
    work leaves it out.
    """

    def __init__(
        self,
        place: Installation,
        store: Store,
        sequencing: Sequencing,
        clock: Clock,
        heard: Callable[[], None] | None = None,
    ) -> None:
        self._sequencing = sequencing
        self._speaker = _Speaker(store, clock)
        self._listener = None if heard is None else _Listener(_direct(place), heard, clock)

    def start(self) -> None:
        """Begin, after the Ledger has begun."""
        self._sequencing.start()
        self._speaker.start()
        if self._listener is not None:
            self._listener.start()

    def committed(self) -> None:
        """This process has committed something; never blocks."""
        self._sequencing.wake()
        self._speaker.wake()

    def stop(self) -> None:
        """Say what is left to say, listen no more, and give the lead up."""
        if self._listener is not None:
            self._listener.stop()
        self._speaker.stop()
        self._sequencing.close()


class _Speaker:
    """One notice for all commits since the last one."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self._due = threading.Event()
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._work, name="speaker", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def wake(self) -> None:
        self._due.set()

    def stop(self) -> None:
        self._stopping.set()
        self._due.set()
        if self._thread.is_alive():
            self._thread.join()

    def _work(self) -> None:
        while not self._stopping.is_set():
            self._due.wait()
            self._due.clear()
            try:
                notices.notify(self._store)
            except StoreUnavailableError as error:
                # Whoever works looks by itself every second: nothing is lost but time.
                log.info("notice.not_sent", reason=str(error))
            self._clock.wait(self._stopping, _QUIET_S)


class _Listener:
    """Hears notices for as long as there is a connection, and tries to get one again."""

    def __init__(self, url: str, heard: Callable[[], None], clock: Clock) -> None:
        self._url = url
        self._heard = heard
        self._clock = clock
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._work, name="listener", daemon=True)

    def start(self) -> None:
        if self._url:
            self._thread.start()

    def stop(self) -> None:
        self._stopping.set()
        if self._thread.is_alive():
            self._thread.join()

    def _work(self) -> None:
        while not self._stopping.is_set():
            try:
                with notices.listening(self._url) as wait:
                    # What was said before is not heard any more.
                    self._heard()
                    self._listen(wait)
            except StoreUnavailableError as error:
                log.warning("notice.not_heard", reason=str(error))
                self._clock.wait(self._stopping, _TRY_AGAIN_S)

    def _listen(self, wait: Callable[[float], bool]) -> None:
        while not self._stopping.is_set():
            if wait(_LISTEN_S):
                self._heard()


def _direct(place: Installation) -> str:
    """The address around a pooler; "" if there is only one through it, where nobody can listen."""
    if place.database_direct is not None:
        return place.database_direct.reveal()
    url = place.database.reveal()
    return "" if "prepared=off" in url else url

"""Alerts of our own: what needs a human is told to destinations, once, and once more when over."""

from __future__ import annotations

import hashlib
import threading
from dataclasses import dataclass
from pathlib import Path

from app.artifacts import Blobs
from app.clock import Clock
from app.config import Config
from app.ledger import Ledger, LedgerClosedError
from app.store import alerts
from app.store.alerts import Alert, Found
from app.store.errors import StoreUnavailableError
from app.telemetry import log
from app.web.api.office import Office
from app.web.api.overview import Need, needs_of
from app.web.auth import Who
from domain import canonical
from domain.ids import derive
from domain.outcomes import Done
from domain.signatures import InvalidSecret
from domain.strict_json import JsonObject
from domain.telling import instant
from jobs.notify import NotifyJob, notify, settings_of
from jobs.tools import Http, Tools

# What stands is counted from many rows, so not too often.
_ROUND_S = 30.0
_EVERYTHING = Who("", "alerts", "admin")
# Of these there may be several at once for one name, told apart by their reason.
_BY_REASON = frozenset({"dead-job", "dead-message"})


@dataclass(frozen=True, slots=True)
class Parts:
    """What alerts are made from and sent with."""

    config: Config
    ledger: Ledger
    office: Office
    http: Http
    blobs: Blobs
    clock: Clock


class Alerting:
    """Looks every half minute; any number of processes may do so beside each other."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._work, name="alerts", daemon=True)
        self._places = tuple(n for n in parts.config.alerts.notify if not n.startswith("mailto:"))

    def start(self) -> None:
        """Begin to look."""
        self._thread.start()

    def stop(self) -> None:
        """Look no more."""
        self._stopping.set()
        if self._thread.is_alive():
            self._thread.join()

    def _work(self) -> None:
        while not self._parts.clock.wait(self._stopping, _ROUND_S):
            try:
                self.round()
            except LedgerClosedError:
                return
            except StoreUnavailableError as error:
                log.warning("alerts.store.unavailable", reason=str(error))

    def round(self) -> None:
        """Open and close what there is to, and tell those who have not heard."""
        found = [_found(need) for need in needs_of(self._parts.office, _EVERYTHING)]
        ledger = self._parts.ledger
        ledger.operate(lambda connection, now_ms: alerts.keep(connection, found, now_ms))
        if not self._places:
            return
        due = ledger.operate(lambda connection, ms: alerts.take(connection, self._places, ms))
        for alert in due:
            if self._stopping.is_set():
                return
            self._tell(alert)

    def _tell(self, alert: Alert) -> None:
        word = "closed" if alert.closed_ms else "opened"
        told = dict(alert.told)
        for place in alerts.missing(alert, self._places):
            if self._is_told(place, alert, word):
                told[place] = word
        if told != alert.told:
            self._parts.ledger.operate(lambda connection, _: alerts.note(connection, alert, told))

    def _is_told(self, place: str, alert: Alert, word: str) -> bool:
        parts = self._parts
        destination = parts.config.destination(place)
        if destination is None:
            return False
        settings = settings_of(destination, http=parts.http, clock=parts.clock)
        if isinstance(settings, InvalidSecret):
            return False
        about = (place, alert.key, str(alert.opened_ms), word)
        message_id = derive(parts.ledger.book.key, "msg", "alert", *about)
        body = canonical.encode(body_of(alert, self._parts.config.installation.base_url))
        # It makes no file, so it needs no folder of its own.
        tools = Tools(parts.http, parts.blobs, Path(), parts.clock)
        _, outcome = notify(NotifyJob(message_id, settings, 1, body), tools)
        if isinstance(outcome, Done):
            log.info("alert.told", what=alert.what, destination=place, outcome=word)
            return True
        log.warning("alert.not_told", what=alert.what, destination=place, reason=outcome.reason)
        return False


def body_of(alert: Alert, base_url: str) -> JsonObject:
    """What is told: the same bytes at each try of the same state."""
    at_ms = alert.closed_ms or alert.opened_ms
    data: JsonObject = {
        "alert": _id_of(alert),
        "what": alert.what,
        "name": alert.name,
        "reason": alert.reason,
        "count": alert.count,
        "opened_at": instant(alert.opened_ms * 1000),
        "link": f"{base_url}/console",
    }
    if alert.closed_ms:
        data["closed_at"] = instant(alert.closed_ms * 1000)
    kind = "alert.closed" if alert.closed_ms else "alert.opened"
    return {"type": kind, "timestamp": instant(at_ms * 1000), "data": data}


def _id_of(alert: Alert) -> str:
    text = f"{alert.key}:{alert.opened_ms}"
    return f"alr_{hashlib.sha256(text.encode()).hexdigest()[:26]}"


def _found(need: Need) -> Found:
    parts = [need.what, need.name, *([need.reason] if need.what in _BY_REASON else [])]
    # What failed may be quoted in the reason, so the key is a hash of it.
    key = hashlib.sha256("\0".join(parts).encode("utf-8", "surrogatepass")).hexdigest()
    return Found(key, need.what, need.name, need.count, need.reason)

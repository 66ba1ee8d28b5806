"""Alerts: what was told to those who hear of trouble."""

from __future__ import annotations

from typing import Any

from litestar import get
from msgspec import Struct

from app.store import alerts
from app.web.api.office import Asker, Here, Listing, at
from app.web.auth import needs
from app.web.problems import Problem
from app.web.rest import ProblemError


class AlertOut(Struct):
    """A trouble, since when, until when, and how far each place has heard of it."""

    what: str
    name: str
    count: int
    reason: str
    opened_at: str | None
    closed_at: str | None
    told: dict[str, str]


@get("/alerts", guards=[needs("viewer")], sync_to_thread=True, summary="Alerts", tags=["overview"])
def alert_list(office: Here, who: Asker) -> Listing[AlertOut]:
    """Open alerts, the newest first, then those of the last thirty days that are over."""
    if who.sources is not None:
        detail = "you are limited to some sources, and alerts are about all"
        raise ProblemError(Problem(403, "forbidden", detail))
    with office.store.read() as connection:
        found = alerts.listed(connection)
    return Listing(
        [
            AlertOut(
                what=alert.what,
                name=alert.name,
                count=alert.count,
                reason=alert.reason,
                opened_at=at(alert.opened_ms),
                closed_at=at(alert.closed_ms) if alert.closed_ms else None,
                told=dict(alert.told),
            )
            for alert in found
        ]
    )


HANDLERS: list[Any] = [alert_list]

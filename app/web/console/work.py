"""Dead letters by cause, messages, jobs, deliveries."""

from __future__ import annotations

from typing import Any

from litestar import get
from litestar.params import FromPath, FromQuery

from app.web.api import arrivals, dead, work
from app.web.console.asking import ask
from app.web.console.pages import Page, Visiting, page
from app.web.console.session import signed_in

MESSAGE_STATES = (
    "pending",
    "sending",
    "waiting",
    "unclear",
    "delivered",
    "dead",
    "skipped",
    "held",
    "discarded",
)
JOB_STATES = ("ready", "running", "waiting", "done", "dead", "cancelled", "discarded")
VERDICTS = ("accepted", "duplicate", "conflict", "ignored", "stale", "rejected", "failed")


@get("/dead-letters", guards=[signed_in("viewer")], sync_to_thread=True)
def dead_page(visit: Visiting) -> Page:
    """What gave up, grouped by cause, the largest group first."""
    found = ask(dead.dead_list, visit.office, visit.who)
    total = sum(cause.count for cause in found.items)
    return page(visit, "dead.html", causes=found.items, total=total)


@get("/messages", guards=[signed_in("viewer")], sync_to_thread=True)
def message_page(
    visit: Visiting,
    destination: FromQuery[str] = "",
    in_state: FromQuery[str] = "",
    reference: FromQuery[str] = "",
    cursor: FromQuery[str] = "",
) -> Page:
    """Messages, the last ordered first."""
    found = ask(
        work.message_list,
        visit.office,
        visit.who,
        destination=destination,
        in_state=in_state if in_state in MESSAGE_STATES else "",
        reference=reference,
        limit=50,
        cursor=cursor,
    )
    return page(
        visit,
        "messages.html",
        found=found,
        destination=destination,
        in_state=in_state,
        reference=reference,
        states=MESSAGE_STATES,
        destinations=[d.name for d in visit.office.config.destinations],
    )


@get("/messages/{message:str}", guards=[signed_in("viewer")], sync_to_thread=True)
def message_one_page(visit: Visiting, message: FromPath[str]) -> Page:
    """A message with its exact bytes and every attempt."""
    found = ask(work.message_one, visit.office, visit.who, message)
    return page(visit, "message.html", message=found)


@get("/jobs", guards=[signed_in("viewer")], sync_to_thread=True)
def job_page(
    visit: Visiting,
    in_state: FromQuery[str] = "",
    kind: FromQuery[str] = "",
    name: FromQuery[str] = "",
    cursor: FromQuery[str] = "",
) -> Page:
    """Jobs, the last ordered first."""
    found = ask(
        work.job_list,
        visit.office,
        visit.who,
        in_state=in_state if in_state in JOB_STATES else "",
        kind=kind,
        name=name,
        limit=50,
        cursor=cursor,
    )
    return page(
        visit,
        "jobs.html",
        found=found,
        in_state=in_state,
        kind=kind,
        name=name,
        states=JOB_STATES,
    )


@get("/deliveries", guards=[signed_in("viewer")], sync_to_thread=True)
def delivery_page(
    visit: Visiting,
    source: FromQuery[str] = "",
    verdict: FromQuery[str] = "",
    event_id: FromQuery[str] = "",
    cursor: FromQuery[str] = "",
) -> Page:
    """Every attempt to tell us something, the last first."""
    found = ask(
        arrivals.delivery_list,
        visit.office,
        visit.who,
        source=source,
        verdict=verdict if verdict in VERDICTS else "",
        event_id=event_id,
        limit=50,
        cursor=cursor,
    )
    return page(
        visit,
        "deliveries.html",
        found=found,
        source=source,
        verdict=verdict,
        event_id=event_id,
        verdicts=VERDICTS,
        sources=[s.name for s in visit.office.config.sources if visit.who.sees(s.name)],
    )


@get("/deliveries/{delivery:str}", guards=[signed_in("viewer")], sync_to_thread=True)
def delivery_one_page(visit: Visiting, delivery: FromPath[str]) -> Page:
    """One delivery, its body masked."""
    found = ask(arrivals.delivery_one, visit.office, visit.who, delivery)
    return page(visit, "delivery.html", delivery=found)


HANDLERS: list[Any] = [
    dead_page,
    message_page,
    message_one_page,
    job_page,
    delivery_page,
    delivery_one_page,
]

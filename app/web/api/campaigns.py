"""Campaigns: many messages sent again by one order, at a pace, with a canary, watched and held."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from litestar import get, post
from litestar.params import FromPath, JSONBody
from msgspec import json, structs

from app.ledger.requests import Answer, Control
from app.store import campaigns, queue
from app.store.campaigns import Campaign, Plan
from app.store.engine import Connection
from app.store.reading import files, work
from app.store.reading.pages import Page
from app.store.reading.work import WorkFilter
from app.web.api.campaign_shapes import (
    CampaignFilter,
    CampaignIn,
    CampaignOut,
    CampaignPreview,
    CountOut,
    FailingOut,
    Seen,
)
from app.web.api.office import (
    Asker,
    Cursor,
    Here,
    Limit,
    Listing,
    Office,
    Reasoned,
    instant_ms,
    paged,
    there,
)
from app.web.api.orders import Call, IdempotencyKey, Ordered, control, once, refused, try_out
from app.web.api.work import resolving
from app.web.auth import Who, needs
from app.web.problems import Problem
from app.web.rest import ProblemError
from domain.campaigns import Pace
from domain.commands import Refusal
from domain.ids import derive
from domain.installation import CampaignBegun, CampaignEnded, Paused, Resumed

_TAGS = ["campaigns"]
_WAIT_S = 30.0
_TRIED = 200
_SHOWN = 10
_STANDING = ("pending", "sending")


@post(
    "/campaigns",
    guards=[needs("operator")],
    status_code=200,
    sync_to_thread=True,
    summary="Send many messages again",
    tags=_TAGS,
)
def campaign_begin(
    office: Here, who: Asker, data: JSONBody[CampaignIn], key: IdempotencyKey = ""
) -> CampaignOut | CampaignPreview:
    """The same bytes under the same ids, by filter or all, at a pace below what goes on live."""
    wanted = _wanted(office, who, data.filter)
    if data.dry_run:
        return _previewed(office, who, wanted, data)
    call = Call("campaign", data, key)
    return once(office, who, call, lambda: _begun(office, who, wanted, data), CampaignOut)


@get(
    "/campaigns",
    guards=[needs("viewer")],
    sync_to_thread=True,
    summary="Campaigns",
    tags=_TAGS,
)
def campaign_list(
    office: Here, who: Asker, limit: Limit = 50, cursor: Cursor = ""
) -> Listing[CampaignOut]:
    """Campaigns, the last ordered first; those that are long over are no longer told of."""
    with office.store.read() as connection:
        seen = Seen(office, connection)
        return paged(
            limit, cursor, lambda ask: _theirs(who, campaigns.listed(connection, ask)), seen.out
        )


@get(
    "/campaigns/{campaign:str}",
    guards=[needs("viewer")],
    sync_to_thread=True,
    summary="A campaign",
    tags=_TAGS,
)
def campaign_one(office: Here, who: Asker, campaign: FromPath[str]) -> CampaignOut:
    """How far it is, what it waits for, and what did not arrive."""
    with office.store.read() as connection:
        found = _visible(connection, who, campaign)
        shown = Seen(office, connection).out(found)
        return structs.replace(
            shown,
            refusals=campaigns.refusals(connection, campaign),
            failures=[
                FailingOut(each.message, each.state, each.error)
                for each in campaigns.failures(connection, campaign, limit=_SHOWN)
            ],
        )


@post(
    "/campaigns/{campaign:str}/pause",
    guards=[needs("operator")],
    status_code=200,
    sync_to_thread=True,
    summary="Send no more of it for now",
    tags=_TAGS,
)
def campaign_pause(
    office: Here,
    who: Asker,
    campaign: FromPath[str],
    data: JSONBody[Reasoned],
    key: IdempotencyKey = "",
) -> Ordered:
    """What was ordered goes on by itself; nothing more is ordered until it is resumed."""
    name = campaigns.what(_live(office, who, campaign).id)
    event = Paused(at_ms=office.now_ms, what=name, reason=data.reason)
    call = Call(f"pause {name}", data, key)
    return once(office, who, call, lambda: control(office, event, who, data.reason), Ordered)


@post(
    "/campaigns/{campaign:str}/resume",
    guards=[needs("operator")],
    status_code=200,
    sync_to_thread=True,
    summary="Go on with it",
    tags=_TAGS,
)
def campaign_resume(
    office: Here,
    who: Asker,
    campaign: FromPath[str],
    data: JSONBody[Reasoned],
    key: IdempotencyKey = "",
) -> Ordered:
    """One that failures held up begins with its canary anew; what failed before is forgiven."""
    name = campaigns.what(_live(office, who, campaign).id)
    event = Resumed(at_ms=office.now_ms, what=name)
    call = Call(f"resume {name}", data, key)
    return once(office, who, call, lambda: control(office, event, who, data.reason), Ordered)


@post(
    "/campaigns/{campaign:str}/stop",
    guards=[needs("operator")],
    status_code=200,
    sync_to_thread=True,
    summary="Give up what is left of it",
    tags=_TAGS,
)
def campaign_stop(
    office: Here,
    who: Asker,
    campaign: FromPath[str],
    data: JSONBody[Reasoned],
    key: IdempotencyKey = "",
) -> Ordered:
    """For good: what was not ordered stays as it is."""
    found = _live(office, who, campaign)
    call = Call(f"stop {campaign}", data, key)
    return once(office, who, call, lambda: _stopped(office, who, found, data.reason), Ordered)


def _wanted(office: Office, who: Who, told: CampaignFilter) -> WorkFilter:
    if told.file:
        with office.store.read() as connection:
            there(files.one(connection, told.file))
    return WorkFilter(
        state=told.state,
        name=told.destination,
        source=told.source,
        stream=told.file,
        error=told.error,
        answer=told.answer,
        since_ms=instant_ms("since", told.since),
        until_ms=instant_ms("until", told.until),
        ids=told.ids,
        sources=who.sources,
    )


def _previewed(office: Office, who: Who, wanted: WorkFilter, data: CampaignIn) -> CampaignPreview:
    refusals: dict[str, int] = {}
    with office.store.read() as connection:
        counts = work.counts(connection, wanted)
        tried = work.selection(connection, wanted, (0, ""), limit=_TRIED)
        for row in tried:
            command = resolving(row, who, data.reason, "resend", force=data.force)
            preview = try_out(office, there(files.one(connection, row.stream)), command)
            if not preview.would:
                refusals[preview.reason] = refusals.get(preview.reason, 0) + 1
    matched = sum(counts.values())
    queued = sum(count for (_, state), count in counts.items() if state in _STANDING)
    is_whole = len(tried) == matched
    return CampaignPreview(
        dry_run=True,
        matched=matched,
        would=matched - (sum(refusals.values()) if is_whole else queued),
        counts=[CountOut(place, state, count) for (place, state), count in counts.items()],
        tried=len(tried),
        refused=refusals,
    )


def _begun(office: Office, who: Who, wanted: WorkFilter, data: CampaignIn) -> CampaignOut:
    with office.store.read() as connection:
        count = sum(work.counts(connection, wanted).values())
    chance = office.access.dice.salt().hex()
    campaign = derive(office.ledger.book.key, "cmp", who.token, chance)
    pace = Pace(data.rate, data.canary, data.stop_after)
    event = CampaignBegun(
        at_ms=office.now_ms,
        campaign=campaign,
        count=count,
        selection=json.encode(data.filter).decode(),
    )

    def then(connection: Connection, now_ms: int, _: tuple[Answer, ...]) -> None:
        # What is ordered later is not meant: it has its own tries.
        until_ms = min(wanted.until_ms or now_ms, now_ms)
        plan = Plan(replace(wanted, until_ms=until_ms), pace, data.force)
        made = Campaign(campaign, "gathering", who.name, data.reason, plan, now_ms, now_ms)
        campaigns.begin(connection, made)

    request = Control(event, who.cause(data.reason))
    office.ledger.conclude((request,), then).result(_WAIT_S)
    with office.store.read() as connection:
        shown = Seen(office, connection).out(there(campaigns.one(connection, campaign)))
    return structs.replace(shown, total=count, open=count)


def _stopped(office: Office, who: Who, found: Campaign, reason: str) -> Ordered:
    with office.store.read() as connection:
        tally = campaigns.tally(connection, found.id)
        is_paused = campaigns.what(found.id) in queue.paused(connection)
    ended = CampaignEnded(
        at_ms=office.now_ms,
        campaign=found.id,
        outcome="stopped",
        arrived=tally.arrived,
        failed=tally.failed,
    )
    events: list[CampaignEnded | Resumed] = [ended]
    if is_paused:
        events.insert(0, Resumed(at_ms=office.now_ms, what=campaigns.what(found.id)))

    def then(connection: Connection, now_ms: int, answers: tuple[Answer, ...]) -> None:
        if not isinstance(answers[-1], Refusal):
            campaigns.change(connection, found.id, now_ms, state="stopped")

    unit = tuple(Control(event, who.cause(reason)) for event in events)
    answers, _ = office.ledger.conclude(unit, then).result(_WAIT_S)
    if isinstance(answers[-1], Refusal):
        raise refused(answers[-1])
    return Ordered("recorded", [type(event).__name__ for event in events])


def _live(office: Office, who: Who, campaign: str) -> Campaign:
    with office.store.read() as connection:
        found = _visible(connection, who, campaign)
    if not found.is_live:
        raise ProblemError(Problem(409, "conflict", f"the campaign is {found.state}"))
    return found


def _visible(connection: Connection, who: Who, campaign: str) -> Campaign:
    found = campaigns.one(connection, campaign)
    return there(found if found is not None and _is_theirs(who, found) else None)


def _theirs(who: Who, page: Page[Campaign]) -> Page[Campaign]:
    return Page([each for each in page.items if _is_theirs(who, each)], page.next)


def _is_theirs(who: Who, campaign: Campaign) -> bool:
    """Whether it is about nothing but sources that they may see."""
    of = campaign.plan.wanted.sources
    return who.sources is None or (of is not None and set(of) <= set(who.sources))


HANDLERS: list[Any] = [
    campaign_begin,
    campaign_list,
    campaign_one,
    campaign_pause,
    campaign_resume,
    campaign_stop,
]

"""Campaigns: what was ordered about many messages, each of these messages, and what became of it.

The messages are pinned page by page when a campaign begins, so it goes on after a restart with
exactly those that it was about, whatever has changed since.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Literal

import msgspec
import sqlalchemy as sa

from app.store import tables as t
from app.store.reading import work
from app.store.reading.pages import Ask, Page, select_page
from app.store.reading.work import WorkFilter
from domain.campaigns import Pace, Tally

# An ended campaign is told of for so long; what it ordered stays on the log.
_KEPT_MS = 90 * 86_400_000
_AT_ONCE = 1000
# Of so many open messages of a destination others may wait: more makes no difference.
_MOST_LOOKED_AT = 256

State = Literal["gathering", "running", "finished", "stopped"]
Fate = Literal["open", "ordered", "arrived", "failed", "refused", "left"]
_LIVE: tuple[State, ...] = ("gathering", "running")
_C, _M = t.campaigns.c, t.campaign_messages.c


@dataclass(frozen=True, slots=True)
class Plan:
    """What a campaign is about and how it goes; ``force`` sends what is superseded."""

    wanted: WorkFilter
    pace: Pace = field(default_factory=Pace)
    force: bool = False


@dataclass(frozen=True, slots=True)
class Campaign:
    """A campaign as its row tells it.

    ``restarted`` is how many had been ordered when it went on last, ``forgiven`` how many had
    failed by then; ``is_held`` says that it was held up by failures and has not gone on since.
    """

    id: str
    state: State
    operator: str
    reason: str = field(repr=False)
    plan: Plan = field(repr=False)
    made_ms: int = 0
    changed_ms: int = 0
    next_ms: int = 0
    gathered: int = 0
    gathered_ms: int = 0
    gathered_id: str = ""
    restarted: int = 0
    forgiven: int = 0
    is_held: int = 0

    @property
    def is_live(self) -> bool:
        """Whether something may still come of it."""
        return self.state in _LIVE


@dataclass(frozen=True, slots=True)
class Item:
    """One message that a campaign is about."""

    place: int
    message: str
    stream: str
    destination: str


@dataclass(frozen=True, slots=True)
class Failing:
    """A message of a campaign that did not arrive, and why."""

    message: str
    state: str
    error: str


def what(campaign: str) -> str:
    """Its name where parts are paused."""
    return f"campaign:{campaign}"


def begin(connection: sa.Connection, campaign: Campaign) -> None:
    """Keep the order; its messages are gathered afterwards. What is long over is forgotten."""
    old = sa.and_(_C.state.not_in(_LIVE), _C.changed_ms < campaign.made_ms - _KEPT_MS)
    gone = sa.select(_C.id).where(old)
    connection.execute(t.campaign_messages.delete().where(_M.campaign.in_(gone)))
    connection.execute(t.campaigns.delete().where(old))
    told = {name: getattr(campaign, name) for name in Campaign.__dataclass_fields__}
    row = told | {"plan": msgspec.json.encode(campaign.plan), "until_ms": 0, "owner": ""}
    connection.execute(t.campaigns.insert().values(row))


def one(connection: sa.Connection, campaign: str) -> Campaign | None:
    """The campaign of this id."""
    row = connection.execute(sa.select(t.campaigns).where(_C.id == campaign)).first()
    return None if row is None else _campaign(row)


def listed(connection: sa.Connection, ask: Ask) -> Page[Campaign]:
    """Campaigns, the last ordered first."""
    page = select_page(connection, sa.select(t.campaigns), (_C.made_ms, _C.id), ask)
    return Page([_campaign(row) for row in page.items], page.next)


def live(connection: sa.Connection) -> list[Campaign]:
    """Those that something may still come of, the first ordered first."""
    query = sa.select(t.campaigns).where(_C.state.in_(_LIVE)).order_by(_C.made_ms, _C.id)
    return [_campaign(row) for row in connection.execute(query)]


def take_turn(
    connection: sa.Connection, campaign: str, owner: str, now_ms: int, *, turn: tuple[int, int]
) -> bool:
    """Be the one who moves it for the first of these times, and the next not before the second."""
    lease_ms, pause_ms = turn
    is_free = sa.or_(_C.owner == owner, _C.until_ms <= now_ms)
    taken = t.campaigns.update().where(_C.id == campaign, _C.state.in_(_LIVE), is_free)
    values = {"owner": owner, "until_ms": now_ms + lease_ms, "next_ms": now_ms + pause_ms}
    return connection.execute(taken.values(values)).rowcount == 1


def gather(connection: sa.Connection, campaign: Campaign, now_ms: int) -> None:
    """Pin the next messages that match; behind the last ones the sending begins."""
    after = (campaign.gathered_ms, campaign.gathered_id)
    found = work.selection(connection, campaign.plan.wanted, after, limit=_AT_ONCE)
    rows = [
        {
            "campaign": campaign.id,
            "place": campaign.gathered + number,
            "message": row.id,
            "stream": row.stream,
            "destination": row.name,
            "fate": "open",
            "why": "",
        }
        for number, row in enumerate(found, start=1)
    ]
    if rows:
        connection.execute(t.campaign_messages.insert(), rows)
        last = found[-1]
        values: dict[str, Any] = {
            "gathered": campaign.gathered + len(rows),
            "gathered_ms": last.ordered_ms,
            "gathered_id": last.id,
        }
    else:
        values = {"state": "running", "changed_ms": now_ms}
    mine = sa.and_(_C.id == campaign.id, _C.gathered == campaign.gathered)
    connection.execute(t.campaigns.update().where(mine).values(values))


def tally(connection: sa.Connection, campaign: str) -> Tally:
    """How many of its messages met which fate."""
    query = sa.select(_M.fate, sa.func.count()).where(_M.campaign == campaign).group_by(_M.fate)
    counts: dict[str, int] = {row[0]: row[1] for row in connection.execute(query)}
    under_way = counts.pop("ordered", 0)
    return Tally(under_way=under_way, **counts)


def destinations(connection: sa.Connection, campaign: str, fate: Fate) -> dict[str, int]:
    """How many of its messages with this fate each destination has; open ones are not counted."""
    of_fate = sa.and_(_M.campaign == campaign, _M.fate == fate)
    if fate != "open":
        query = sa.select(_M.destination, sa.func.count()).where(of_fate)
        return {row[0]: row[1] for row in connection.execute(query.group_by(_M.destination))}
    found: dict[str, int] = {}
    place = ""
    # From name to name: there are few, and very many messages of each.
    following = sa.select(sa.func.min(_M.destination)).where(of_fate)
    while place := connection.execute(following.where(_M.destination > place)).scalar() or "":
        found[place] = 1
    return found


def open_items(
    connection: sa.Connection, campaign: str, destination: str, *, limit: int
) -> list[Item]:
    """The next messages to order for a destination."""
    query = (
        sa.select(_M.place, _M.message, _M.stream, _M.destination)
        .where(_M.campaign == campaign, _M.fate == "open", _M.destination == destination)
        .order_by(_M.place)
        .limit(limit)
    )
    return [Item(*row) for row in connection.execute(query)]


def unsettled(connection: sa.Connection, campaign: str) -> list[tuple[int, Fate]]:
    """The places of those ordered or failed whose fate is another by now, and which."""
    states = t.messages.c
    query = (
        sa.select(_M.place, _M.fate, states.state, states.attempts)
        .select_from(t.campaign_messages.join(t.messages, states.id == _M.message))
        .where(_M.campaign == campaign, _M.fate.in_(("ordered", "failed")))
    )
    found = [(place, fate, _fate(state, n)) for place, fate, state, n in connection.execute(query)]
    return [(place, now) for place, before, now in found if now != before]


def settle(connection: sa.Connection, campaign: str, fates: Iterable[tuple[int, Fate]]) -> None:
    """Write down what became of these places."""
    for place, fate in fates:
        mark(connection, campaign, place, fate)


def mark(
    connection: sa.Connection, campaign: str, place: int, fate: Fate, *, why: str = ""
) -> None:
    """What became of one place."""
    row = sa.and_(_M.campaign == campaign, _M.place == place)
    connection.execute(t.campaign_messages.update().where(row).values(fate=fate, why=why))


def change(connection: sa.Connection, campaign: str, now_ms: int, **values: int | str) -> None:
    """Write down where the campaign stands."""
    row = t.campaigns.update().where(_C.id == campaign)
    connection.execute(row.values(changed_ms=now_ms, **values))


def stop_all(connection: sa.Connection) -> None:
    """Let none go on: the store is not the one that they were at work on."""
    connection.execute(t.campaigns.update().where(_C.state.in_(_LIVE)).values(state="stopped"))


def is_over(connection: sa.Connection, campaign: str) -> bool:
    """Whether nothing comes of it any more, or it never was."""
    found = one(connection, campaign)
    return found is None or not found.is_live


def refusals(connection: sa.Connection, campaign: str) -> dict[str, int]:
    """Why messages were not sent again, and how many for each reason."""
    query = sa.select(_M.why, sa.func.count()).where(_M.campaign == campaign, _M.fate == "refused")
    query = query.group_by(_M.why).order_by(sa.func.count().desc()).limit(50)
    return {row[0]: row[1] for row in connection.execute(query)}


def failures(connection: sa.Connection, campaign: str, *, limit: int) -> list[Failing]:
    """The first messages that did not arrive."""
    found = t.messages.c
    query = (
        sa.select(found.id, found.state, found.error)
        .select_from(t.campaign_messages.join(t.messages, found.id == _M.message))
        .where(_M.campaign == campaign, _M.fate == "failed")
        .order_by(_M.place)
        .limit(limit)
    )
    return [Failing(*row) for row in connection.execute(query)]


def is_busy(connection: sa.Connection, destination: str, now_ms: int, *, beside: int) -> bool:
    """Whether more than these wait at the destination and are due: live messages go first."""
    due = (
        sa.select(t.messages.c.id)
        .where(t.messages.c.destination == destination, t.OPEN_MESSAGES)
        .where(t.messages.c.due_ms <= now_ms)
        .limit(min(beside + 1, _MOST_LOOKED_AT))
    )
    return len(connection.execute(due).all()) > beside


def _fate(state: str, attempts: int) -> Fate:
    """What a message that was sent again has come to; one that is tried once more has failed."""
    if state == "delivered":
        return "arrived"
    if state in {"skipped", "discarded"}:
        return "left"
    is_failing = state in {"dead", "held", "unclear"} or (state == "waiting" and attempts > 0)
    return "failed" if is_failing else "ordered"


def _campaign(row: sa.Row[Any]) -> Campaign:
    told = {name: getattr(row, name) for name in Campaign.__dataclass_fields__}
    plan = msgspec.json.decode(row.plan, type=Plan)
    return Campaign(**told | {"plan": plan})

"""Campaigns as clients order and see them."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Annotated, Any, Literal

from msgspec import Meta, Struct

from app.store import campaigns, queue, workers
from app.store.campaigns import Campaign
from app.store.engine import Connection
from app.store.reading import overview
from app.store.reading.overview import Pause
from app.store.reading.work import WorkFilter
from app.web.api.office import Office, Reasoned, at
from domain import breaker
from domain.campaigns import stage

# A worker that was not seen for so long is taken for gone.
_GONE_MS = 60_000

State = Literal["gathering", "running", "paused", "held up", "finished", "stopped"]


class CampaignFilter(Struct, forbid_unknown_fields=True, frozen=True):
    """Which messages: each field that is given narrows them down; none of them means all.

    ``error`` is a cause in full, ``answer`` text in the record of an attempt, ``file`` an id.
    """

    destination: Annotated[str, Meta(max_length=200)] = ""
    state: Annotated[str, Meta(max_length=40)] = ""
    source: Annotated[str, Meta(max_length=200)] = ""
    file: Annotated[str, Meta(max_length=200)] = ""
    error: Annotated[str, Meta(max_length=4000)] = ""
    answer: Annotated[str, Meta(max_length=1000)] = ""
    since: Annotated[str, Meta(max_length=64)] = ""
    until: Annotated[str, Meta(max_length=64)] = ""
    ids: Annotated[tuple[str, ...], Meta(max_length=1000)] = ()


class CampaignIn(Reasoned, forbid_unknown_fields=True):
    """Send messages again; ``dry_run`` says what it would be about.

    ``canary``: 1, 10, 100, then the rest, each stage once all before it have arrived. So many
    failures as ``stop_after`` hold it up. ``force`` sends what a newer version has superseded.
    """

    filter: CampaignFilter = CampaignFilter()
    rate: Annotated[float, Meta(ge=0.01, le=10_000)] = 10.0
    canary: bool = True
    stop_after: Annotated[int, Meta(ge=1, le=1_000_000)] = 1
    force: bool = False
    dry_run: bool = False


class CountOut(Struct):
    """How many messages to a destination are in a state."""

    destination: str
    state: str
    count: int


class CampaignPreview(Struct):
    """What an order would be about; the first ``tried`` were looked at one by one."""

    dry_run: bool
    matched: int
    would: int
    counts: list[CountOut]
    tried: int
    refused: dict[str, int]


class FailingOut(Struct):
    """A message that did not arrive."""

    message: str
    state: str
    error: str


class CampaignOut(Struct):
    """A campaign, how far it is, and what it waits for.

    ``open`` ones have not been ordered yet, ``under_way`` ones have not ended yet; ``left`` were
    skipped or given up. ``stage`` is 1, 2, 3 for the canary's and 4 for the rest.
    """

    id: str
    state: State
    reason: str
    operator: str
    made_at: str | None
    changed_at: str | None
    filter: dict[str, Any]
    rate: float
    canary: bool
    stop_after: int
    force: bool
    stage: int
    total: int
    open: int
    under_way: int
    arrived: int
    failed: int
    refused: int
    left: int
    why: str = ""
    waits_for: list[str] = []
    refusals: dict[str, int] = {}
    failures: list[FailingOut] = []


class Seen:
    """Reads how campaigns stand, on one connection."""

    def __init__(self, office: Office, connection: Connection) -> None:
        self._connection = connection
        self._now_ms = office.now_ms
        self._policies = {place.name: place.breaker for place in office.config.destinations}
        self._picture = queue.picture(connection, self._now_ms)
        self._pauses = {pause.what: pause for pause in overview.pauses(connection)}
        self._workers = workers.alive(connection, self._now_ms - _GONE_MS)

    def out(self, campaign: Campaign) -> CampaignOut:
        """The campaign as clients see it."""
        tally = campaigns.tally(self._connection, campaign.id)
        plan, pace = campaign.plan, campaign.plan.pace
        pause = self._pauses.get(campaigns.what(campaign.id))
        return CampaignOut(
            id=campaign.id,
            state=_state(campaign, pause),
            reason=campaign.reason,
            operator=campaign.operator,
            made_at=at(campaign.made_ms),
            changed_at=at(campaign.changed_ms),
            filter=_filter_out(plan.wanted),
            rate=pace.rate_per_s,
            canary=pace.is_careful,
            stop_after=pace.most_failures,
            force=plan.force,
            stage=stage(pace, tally, restarted=campaign.restarted),
            total=tally.total,
            open=tally.open,
            under_way=tally.under_way,
            arrived=tally.arrived,
            failed=tally.failed,
            refused=tally.refused,
            left=tally.left,
            why=pause.reason if pause else "",
            waits_for=list(self._obstacles(campaign)) if campaign.is_live else [],
        )

    def _obstacles(self, campaign: Campaign) -> Iterator[str]:
        if not self._workers:
            yield "a worker: none runs"
        for place in campaigns.destinations(self._connection, campaign.id, "open"):
            scope = f"destination:{place}"
            if not self._picture.paused.isdisjoint(("all", scope)):
                yield f"{place}, which is paused"
            elif scope in self._picture.waits:
                yield f"{place}, which asked us to wait"
            elif place in self._policies and self._is_cut_off(scope, place):
                yield f"{place}, which is cut off"

    def _is_cut_off(self, scope: str, place: str) -> bool:
        circuit = breaker.load(self._policies[place], self._picture.breakers.get(scope, ""))
        return breaker.word(circuit, datetime.fromtimestamp(self._now_ms / 1000, UTC)) != "closed"


def _state(campaign: Campaign, pause: Pause | None) -> State:
    if pause is None or not campaign.is_live:
        return campaign.state
    return "paused" if pause.operator else "held up"


def _filter_out(wanted: WorkFilter) -> dict[str, Any]:
    """What was told of the messages, in the words of the order."""
    told: dict[str, Any] = {
        "destination": wanted.name,
        "state": wanted.state,
        "source": wanted.source,
        "file": wanted.stream,
        "error": wanted.error,
        "answer": wanted.answer,
        "since": at(wanted.since_ms),
        "until": at(wanted.until_ms),
        "ids": list(wanted.ids),
    }
    return {name: value for name, value in told.items() if value}

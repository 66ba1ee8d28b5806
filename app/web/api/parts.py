"""Sources, recipes, steps, destinations: how each stands; paused and resumed."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from functools import partial
from typing import Any, Literal, get_args

from litestar import get, post
from litestar.params import FromPath, JSONBody
from msgspec import Struct

from app.config import Config, Destination, Source
from app.store import breakers, walks
from app.store.reading import overview
from app.store.reading.overview import Pause
from app.web.api.office import Asker, Here, Listing, Office, Reasoned, at
from app.web.api.orders import Call, IdempotencyKey, Ordered, control, once
from app.web.auth import Who, needs
from app.web.problems import Problem
from app.web.rest import ProblemError
from domain import breaker
from domain.breaker import BreakerPolicy
from domain.installation import Paused, Resumed
from domain.recipes import Recipe

_TAGS = ["parts"]
_LATELY_MS = 3_600_000

Kind = Literal["sources", "recipes", "steps", "destinations"]
_Verb = Literal["pause", "resume"]
_KINDS: tuple[Kind, ...] = get_args(Kind)


class PauseOut(Struct):
    """Why, by whom and since when a part is paused."""

    reason: str
    operator: str
    since: str | None


class ChangesOut(Struct):
    """A source's change feed: its last whole walk, tries that failed since, the last one's reason.

    ``reconciled`` counts events that a walk found and that no notice had asked to look for.
    """

    walked_at: str | None
    reconciled: int
    failures: int
    error: str


class SourceOut(Struct):
    """A source: its deliveries of the last hour by verdict, and which secret proved one when."""

    name: str
    profile: str
    paused: PauseOut | None
    breaker: str
    last_delivery_at: str | None
    silent: bool
    verdicts: dict[str, int]
    ignored_types: dict[str, int]
    keys: dict[str, str | None]
    waits_until: str | None
    breaker_until: str | None = None
    changes: ChangesOut | None = None


class TurnOut(Struct):
    """When a breaker turned, and to what."""

    at: str | None
    to: str


class DestinationOut(Struct):
    """A destination: messages by state, attempts of the last hour by outcome.

    The percentiles are those of its latest deliveries; ``breaker_turns`` has the newest last, and
    ``breaker_until`` is when an open breaker lets the next try through.
    """

    name: str
    paused: PauseOut | None
    breaker: str
    types: list[str]
    states: dict[str, int]
    outcomes: dict[str, int]
    mean_ms: float
    oldest_due_at: str | None
    waits_until: str | None
    p50_ms: int | None = None
    p95_ms: int | None = None
    p99_ms: int | None = None
    last_error: str = ""
    breaker_since: str | None = None
    breaker_until: str | None = None
    breaker_turns: list[TurnOut] = []


class RecipeOut(Struct):
    """A recipe as it is configured today; what was pinned before stays as it was."""

    name: str
    digest: str
    sources: list[str]
    steps: list[str]
    notify: list[str]
    versions: str
    importance: str
    paused: PauseOut | None


class StepOut(Struct):
    """A step by its name, over all recipes that have one of that name."""

    name: str
    recipes: list[str]
    paused: PauseOut | None


@get("/sources", guards=[needs("viewer")], sync_to_thread=True, summary="Sources", tags=_TAGS)
def source_list(office: Here, who: Asker) -> Listing[SourceOut]:
    """The configured sources that you may see."""
    return Listing(sources_out(office, who))


@get(
    "/destinations",
    guards=[needs("viewer")],
    sync_to_thread=True,
    summary="Destinations",
    tags=_TAGS,
)
def destination_list(office: Here) -> Listing[DestinationOut]:
    """The configured destinations."""
    return Listing(destinations_out(office))


@get("/recipes", guards=[needs("viewer")], sync_to_thread=True, summary="Recipes", tags=_TAGS)
def recipe_list(office: Here, who: Asker) -> Listing[RecipeOut]:
    """The configured recipes, in the order in which they are tried."""
    with office.store.read() as connection:
        paused = _paused(overview.pauses(connection))
    recipes = office.ledger.book.configured
    seen = [r for r in recipes if any(who.sees(source) for source in r.sources)]
    return Listing([_recipe(recipe, paused) for recipe in seen])


@get("/steps", guards=[needs("viewer")], sync_to_thread=True, summary="Steps", tags=_TAGS)
def step_list(office: Here) -> Listing[StepOut]:
    """The steps of the configured recipes, by name."""
    with office.store.read() as connection:
        paused = _paused(overview.pauses(connection))
    found: dict[str, list[str]] = {}
    for recipe in office.ledger.book.configured:
        for step in recipe.steps:
            found.setdefault(step.name, []).append(recipe.name)
    return Listing([StepOut(n, r, paused.get(f"step:{n}")) for n, r in found.items()])


def _switch(kind: Kind, verb: _Verb) -> Any:
    """The handler that pauses or resumes parts of one kind."""
    is_pause = verb == "pause"
    summary = "Start no more of its work" if is_pause else "Start its work again"
    path = f"/{kind}/{{name:str}}/{verb}"
    guards = [needs("operator")]

    @post(path, guards=guards, status_code=200, sync_to_thread=True, summary=summary, tags=_TAGS)
    def switch(
        office: Here,
        who: Asker,
        name: FromPath[str],
        data: JSONBody[Reasoned],
        key: IdempotencyKey = "",
    ) -> Ordered:
        """Acceptance goes on, what runs may finish; only the beginning of work is switched."""
        what = _what(office, who, kind, name)
        return _switched(office, who, Call(f"{verb} {what}", data, key), what, is_pause=is_pause)

    return switch


@post(
    "/pause",
    guards=[needs("operator")],
    status_code=200,
    sync_to_thread=True,
    summary="Start no work at all",
    tags=_TAGS,
)
def all_pause(
    office: Here, who: Asker, data: JSONBody[Reasoned], key: IdempotencyKey = ""
) -> Ordered:
    """Everything but acceptance stands still."""
    _unlimited(who)
    return _switched(office, who, Call("pause all", data, key), "all", is_pause=True)


@post(
    "/resume",
    guards=[needs("operator")],
    status_code=200,
    sync_to_thread=True,
    summary="Start work again",
    tags=_TAGS,
)
def all_resume(
    office: Here, who: Asker, data: JSONBody[Reasoned], key: IdempotencyKey = ""
) -> Ordered:
    """Lift the pause of everything; parts that were paused by themselves stay so."""
    _unlimited(who)
    return _switched(office, who, Call("resume all", data, key), "all", is_pause=False)


def sources_out(office: Office, who: Who) -> list[SourceOut]:
    """How the sources that they may see stand."""
    with office.store.read() as connection:
        standing = _Standing(office, connection)
        return [standing.source(s) for s in office.config.sources if who.sees(s.name)]


def destinations_out(office: Office) -> list[DestinationOut]:
    """How the destinations stand."""
    with office.store.read() as connection:
        standing = _Standing(office, connection)
        return [standing.destination(place) for place in office.config.destinations]


def paused_parts(office: Office) -> dict[str, PauseOut]:
    """What is paused, why and by whom."""
    with office.store.read() as connection:
        return _paused(overview.pauses(connection))


def _switched(office: Office, who: Who, call: Call, what: str, *, is_pause: bool) -> Ordered:
    reason = call.body.reason  # type: ignore[attr-defined]
    event: Paused | Resumed
    if is_pause:
        event = Paused(at_ms=office.now_ms, what=what, reason=reason)
    else:
        event = Resumed(at_ms=office.now_ms, what=what)
    return once(office, who, call, partial(control, office, event, who, reason), Ordered)


def _what(office: Office, who: Who, kind: Kind, name: str) -> str:
    """The name of a part in controls; a part that is not configured is not there."""
    config = office.config
    known: Mapping[Kind, set[str]] = {
        "sources": {s.name for s in config.sources if who.sees(s.name)},
        "destinations": {d.name for d in config.destinations},
        "recipes": {c.recipe.name for c in config.recipes},
        "steps": {step.name for c in config.recipes for step in c.recipe.steps},
    }
    if name not in known[kind]:
        raise ProblemError(Problem(404, "not-found", f"no {kind.removesuffix('s')} of that name"))
    if kind != "sources":
        _unlimited(who)
    return f"{kind.removesuffix('s')}:{name}"


def _unlimited(who: Who) -> None:
    """What all sources share is not for those who are limited to some."""
    if who.sources is not None:
        detail = "you are limited to some sources, and this belongs to all"
        raise ProblemError(Problem(403, "forbidden", detail))


def _paused(pauses: list[Pause]) -> dict[str, PauseOut]:
    return {p.what: PauseOut(p.reason, p.operator, at(p.since_ms)) for p in pauses}


def _recipe(recipe: Recipe, paused: Mapping[str, PauseOut]) -> RecipeOut:
    return RecipeOut(
        name=recipe.name,
        digest=recipe.digest,
        sources=list(recipe.sources),
        steps=[step.name for step in recipe.steps],
        notify=list(recipe.notify),
        versions=recipe.versions,
        importance=recipe.importance,
        paused=paused.get(f"recipe:{recipe.name}"),
    )


class _Standing:
    """Reads how sources and destinations stand, on one connection."""

    def __init__(self, office: Office, connection: Any) -> None:
        self._connection = connection
        self._config: Config = office.config
        self._now_ms = office.now_ms
        self._paused = _paused(overview.pauses(connection))
        self._waits = overview.waits(connection, self._now_ms)
        self._breakers = breakers.load_all(connection)
        self._walks = walks.standing(connection)

    def source(self, source: Source) -> SourceOut:
        """How a source stands."""
        scope = f"source:{source.name}"
        since_ms = self._now_ms - _LATELY_MS
        numbers = overview.source_numbers(self._connection, source.name, since_ms)
        silent_ms = self._config.alerts.silent_source_s * 1000
        uses = overview.key_uses(self._connection, source.name)
        return SourceOut(
            name=source.name,
            profile=source.ready.profile.name,
            paused=self._paused.get(scope),
            breaker=self._breaker(scope, source.download.breaker),
            last_delivery_at=at(numbers.last_ms),
            silent=self._now_ms - numbers.last_ms > silent_ms,
            verdicts=dict(numbers.verdicts),
            ignored_types=overview.ignored_types(self._connection, source.name),
            keys={key.id: at(uses.get(key.id)) for key in source.ready.keys},
            waits_until=self._waits_until(scope),
            breaker_until=_until(self._circuit(scope, source.download.breaker)),
            changes=self._changes(source),
        )

    def destination(self, place: Destination) -> DestinationOut:
        """How a destination stands."""
        scope = f"destination:{place.name}"
        since_ms = self._now_ms - _LATELY_MS
        numbers = overview.destination_numbers(self._connection, place.name, since_ms, self._now_ms)
        circuit = self._circuit(scope, place.breaker)
        return DestinationOut(
            name=place.name,
            paused=self._paused.get(scope),
            breaker=self._breaker(scope, place.breaker),
            types=list(place.types),
            states=dict(numbers.states),
            outcomes=dict(numbers.outcomes),
            mean_ms=round(numbers.mean_ms, 1),
            oldest_due_at=at(numbers.oldest_due_ms),
            waits_until=self._waits_until(scope),
            p50_ms=_percentile(numbers.took_ms, 50),
            p95_ms=_percentile(numbers.took_ms, 95),
            p99_ms=_percentile(numbers.took_ms, 99),
            last_error=numbers.last_error,
            breaker_since=_since(circuit),
            breaker_until=_until(circuit),
            breaker_turns=[TurnOut(_moment(turn.at), turn.to) for turn in circuit.turns],
        )

    def _changes(self, source: Source) -> ChangesOut | None:
        found = self._walks.get(source.identity)
        if source.changes is None or found is None:
            return None
        return ChangesOut(at(found.walked_ms), found.reconciled, found.failures, found.error)

    def _breaker(self, scope: str, policy: BreakerPolicy) -> str:
        now = datetime.fromtimestamp(self._now_ms / 1000, UTC)
        return breaker.word(self._circuit(scope, policy), now)

    def _circuit(self, scope: str, policy: BreakerPolicy) -> breaker.Breaker:
        return breaker.load(policy, self._breakers.get(scope, ""))

    def _waits_until(self, scope: str) -> str | None:
        found = self._waits.get(scope)
        return at(found[0]) if found else None


SWITCHES: Mapping[tuple[str, str], Any] = {
    (kind, verb): _switch(kind, verb) for kind in _KINDS for verb in get_args(_Verb)
}


def _percentile(took_ms: tuple[int, ...], percent: int) -> int | None:
    """The least value that so many percent do not exceed."""
    return took_ms[-(-len(took_ms) * percent // 100) - 1] if took_ms else None


def _since(circuit: breaker.Breaker) -> str | None:
    phase = circuit.phase
    return None if isinstance(phase, breaker.Closed) else _moment(phase.since)


def _until(circuit: breaker.Breaker) -> str | None:
    phase = circuit.phase
    return _moment(phase.until) if isinstance(phase, breaker.Open) else None


def _moment(when: datetime) -> str | None:
    return at(round(when.timestamp() * 1000))


HANDLERS: list[Any] = [
    source_list,
    destination_list,
    recipe_list,
    step_list,
    all_pause,
    all_resume,
    *SWITCHES.values(),
]

"""Walks the change feeds of sources: when a notice asks for it, and by itself from time to time.

One process at a time walks a feed, under a claim in the store. What a walk finds is accepted as a
delivery is; the cursor is kept with the last of it, never before. So whoever dies here is walked
after: the same events are found once more and are repeats.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace

from app.clock import Clock
from app.config import Changes, Source
from app.ledger import Ledger, entries
from app.ledger.requests import Accept, Accepted, Answer
from app.points import point
from app.store import projections, queue, walks
from app.store.engine import Connection, Store
from app.store.errors import StoreUnavailableError
from app.store.walks import Claim, Step
from app.telemetry import Metrics, log
from domain.feeds import FOUND, RECONCILED
from domain.outcomes import Again, Dead, Done
from domain.profiles import SourceEvent
from domain.states import File
from jobs.changes import ChangesJob, Walked, walk
from jobs.outbound import credentials_of
from jobs.tools import Cancelled, Credentials, Http, Target, Tools

LEASE_MS = 60_000
AT_ONCE = 200
_LOOK_S = 0.5
_MOST_WALKS = 8
_FIRST_WAIT_S = 5.0
_LONGEST_WAIT_S = 900.0


@dataclass(frozen=True, slots=True)
class Parts:
    """What a walker works with; ``tools`` are those of the process."""

    sources: Sequence[Source]
    ledger: Ledger
    store: Store
    tools: Tools
    clock: Clock
    metrics: Metrics
    owner: str


@dataclass(frozen=True, slots=True)
class _Route:
    """A feed to walk, ready to be asked."""

    source: Source
    changes: Changes
    credentials: Credentials
    target: Target

    def job(self, cursor: str) -> ChangesJob:
        changes = self.changes
        return ChangesJob(
            source=self.source.name,
            feed=changes.feed,
            base=changes.base,
            scope=changes.scope,
            cursor=cursor,
            credentials=self.credentials,
            target=self.target,
        )


class Walker:
    """Looks for feeds that are to be walked; any number of processes may do so side by side."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self._routes = {
            source.identity: _route(source, source.changes, parts.tools.http, parts.clock)
            for source in parts.sources
            if source.changes is not None
        }
        self._stopping = threading.Event()
        self._walking: set[str] = set()
        self._lock = threading.Lock()
        self._thread = threading.Thread(target=self._work, name="walker", daemon=True)
        self._pool = ThreadPoolExecutor(_MOST_WALKS, thread_name_prefix="walk")

    def start(self) -> None:
        """Begin to look; without a feed there is nothing to look for."""
        if self._routes:
            self._thread.start()

    def stop(self) -> None:
        """Begin no walk; those under way end with their present request and are handed back."""
        self._stopping.set()
        if self._thread.is_alive():
            self._thread.join()
        self._pool.shutdown()

    def _work(self) -> None:
        while not self._parts.clock.wait(self._stopping, _LOOK_S):
            try:
                self._look()
            except StoreUnavailableError as error:
                log.warning("walk.not_begun", reason=str(error))

    def _look(self) -> None:
        now_ms = int(self._parts.clock.now().timestamp() * 1000)
        with self._parts.store.read() as connection:
            found = walks.due(connection, self._routes, now_ms)
            paused = queue.paused(connection) if found else frozenset()
        for identity in found:
            route = self._routes[identity]
            if not paused & {"all", f"source:{route.source.name}"} and self._begins(identity):
                self._pool.submit(self._walk, identity, route)

    def _begins(self, identity: str) -> bool:
        with self._lock:
            is_new = identity not in self._walking
            self._walking.add(identity)
        return is_new

    def _walk(self, identity: str, route: _Route) -> None:
        try:
            self.walk_if_due(identity, route)
        except StoreUnavailableError as error:
            log.warning("walk.not_stored", source=route.source.name, reason=str(error))
        except Exception:
            log.exception("walk.broken", source=route.source.name)
        finally:
            with self._lock:
                self._walking.discard(identity)

    def walk_if_due(self, identity: str, route: _Route) -> None:
        """One walk, if nobody else is at it. A defect leaves the claim, which lapses."""
        parts = self._parts
        mine = parts.ledger.operate(
            lambda c, now_ms: walks.claim(c, identity, parts.owner, now_ms, lease_ms=LEASE_MS)
        )
        if mine is None:
            return
        watch = _Watch(parts, mine, self._stopping)
        outcome = walk(route.job(mine.cursor), replace(parts.tools, progress=watch.progress))
        if isinstance(outcome, Done):
            self._keep(route, mine, outcome.result)
        elif self._stopping.is_set():
            parts.ledger.operate(lambda c, _: walks.hand_back(c, mine))
        else:
            self._fail(route, mine, outcome)

    # -- what came of it --------------------------------------------------------------------------

    def _keep(self, route: _Route, mine: Claim, walked: Walked) -> None:
        name = route.source.name
        if walked.was_reset:
            log.warning("walk.reset", source=name)
        point("changes.found.before")
        accepts = self._accepts(route, mine, walked.events)
        answers: list[Answer] = []
        while len(accepts) - len(answers) > AT_ONCE:
            some = accepts[len(answers) : len(answers) + AT_ONCE]
            answers += self._parts.ledger.submit(*some).result()
        point("changes.found.stored")
        last = accepts[len(answers) :]
        next_s = 0.0 if walked.is_more else route.changes.every_s

        def keep(connection: Connection, now_ms: int, told: Sequence[Answer]) -> bool:
            reconciled = _new(accepts, [*answers, *told]).get(RECONCILED, 0)
            step = Step(walked.cursor, reconciled, next_s, is_whole=not walked.is_more)
            return walks.keep(connection, mine, step, now_ms)

        told, is_ours = self._parts.ledger.conclude(tuple(last), keep).result()
        point("changes.cursor.kept")
        self._say(name, _new(accepts, [*answers, *told]), len(accepts), is_ours=is_ours)

    def _say(self, name: str, new: dict[str, int], found: int, *, is_ours: bool) -> None:
        metrics = self._parts.metrics
        for by, number in new.items():
            metrics.count("found_events", number, source=name, by=by)
        metrics.count("walks", source=name, outcome="done" if is_ours else "overtaken")
        reconciled = new.get(RECONCILED, 0)
        new_count = sum(new.values())
        log.info("walk.finished", source=name, found=found, new=new_count, reconciled=reconciled)

    def _fail(self, route: _Route, mine: Claim, why: Again | Dead) -> None:
        name = route.source.name
        asked_s = why.wait_s if isinstance(why, Again) else None
        own_s = min(_FIRST_WAIT_S * 2.0 ** min(mine.failures, 10), _LONGEST_WAIT_S)
        wait_s = own_s if asked_s is None else max(asked_s, 1.0)
        is_for_all = isinstance(why, Again) and why.everyone

        def note(connection: Connection, now_ms: int) -> None:
            walks.fail(connection, mine, now_ms, error=why.reason, wait_s=wait_s)
            if is_for_all:
                until_ms = now_ms + round(wait_s * 1000)
                queue.ask_to_wait(connection, f"source:{name}", until_ms, why.reason)

        self._parts.ledger.operate(note)
        self._parts.metrics.count("walks", source=name, outcome="failed")
        log.warning("walk.failed", source=name, reason=why.reason, wait_s=round(wait_s))

    def _accepts(self, route: _Route, mine: Claim, found: Sequence[SourceEvent]) -> list[Accept]:
        parts, changes = self._parts, route.changes
        origin = entries.Origin(
            source=route.source, key=parts.ledger.book.key, received_at=parts.clock.now()
        )
        streams = [origin.stream(told.file_id) for told in found]
        with parts.store.read() as connection:
            files = projections.load(connection, sorted(set(streams))) if streams else {}
        accepts = []
        for told, stream in zip(found, streams, strict=True):
            is_told = mine.is_asked or _is_known(files[stream], told)
            kind = FOUND if is_told else RECONCILED
            url = changes.feed.url(told, changes.base) if told.action == "version" else ""
            accepts.append(entries.found(origin, replace(told, type=kind, url=url)))
        return accepts


class _Watch:
    """Keeps the claim of a walk, and stops it with the process or once another has it."""

    def __init__(self, parts: Parts, mine: Claim, stopping: threading.Event) -> None:
        self._parts = parts
        self._mine = mine
        self._stopping = stopping
        self._renewed_s = parts.clock.monotonic()

    def progress(self, done: int, total: int | None) -> Cancelled | None:
        """Called at least once a second."""
        del done, total
        if self._stopping.is_set():
            return Cancelled("the process stops")
        now_s = self._parts.clock.monotonic()
        if (now_s - self._renewed_s) * 3000 < LEASE_MS:
            return None
        self._renewed_s = now_s
        mine = self._mine
        is_ours = self._parts.ledger.operate(
            lambda c, now_ms: walks.renew(c, mine, now_ms, lease_ms=LEASE_MS)
        )
        return None if is_ours else Cancelled("another walks this feed")


def _route(source: Source, changes: Changes, http: Http, clock: Clock) -> _Route:
    named = tuple(entry for entry in source.download.hosts if "*" not in entry)
    target = Target(named)
    credentials = credentials_of(source.download.auth, http=http, clock=clock, target=target)
    return _Route(source, changes, credentials, target)


def _is_known(file: File, told: SourceEvent) -> bool:
    """Whether what a walk found had been told before, by whatever delivery."""
    if told.action == "version":
        return told.version in file.versions
    return told.action == "deleted" and file.revision > 0 and not file.view.is_present


def _new(accepts: Sequence[Accept], answers: Sequence[Answer]) -> dict[str, int]:
    """How many events were new, by what they were found."""
    new: dict[str, int] = {}
    for accept, answer in zip(accepts, answers, strict=True):
        if isinstance(answer, Accepted):
            new[accept.type] = new.get(accept.type, 0) + 1
    return new

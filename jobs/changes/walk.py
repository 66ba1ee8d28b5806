"""One walk along a change feed: page by page, with a cursor that is safe to keep after each."""

from __future__ import annotations

from dataclasses import dataclass, field

from app.points import point
from domain.feeds import Ask, Feed, Page, read
from domain.outcomes import Again, Dead, Done
from domain.profiles import SourceEvent
from domain.schedule import retry_after
from jobs.tools import (
    Answer,
    Cancelled,
    Credentials,
    Header,
    Limits,
    Request,
    SignInFailed,
    Target,
    Tools,
    Trouble,
    Whole,
)

MOST_PAGES = 50
# Found events are held until all of them are stored.
MOST_EVENTS = 2000
_LARGEST_PAGE_BYTES = 16 << 20
_TIMEOUT_S = 60.0
_FIRST_ERROR = 300
_SERVER_ERROR = 500


@dataclass(frozen=True, slots=True)
class ChangesJob:
    """A feed to walk from ``cursor``, "" for its beginning. ``base`` is where it is asked.

    ``scope`` is the drive or folder, where the feed has such.
    """

    source: str
    feed: Feed = field(repr=False)
    base: str
    scope: str
    cursor: str = field(repr=False)
    credentials: Credentials = field(repr=False)
    target: Target = field(default_factory=Target)


@dataclass(frozen=True, slots=True)
class Walked:
    """What was found, and the cursor behind it.

    ``is_more``: the walk ended at its limit and goes on from the cursor. ``was_reset``: the cursor
    had run out, so the feed was begun anew; what is known already is told again.
    """

    events: tuple[SourceEvent, ...] = field(repr=False)
    cursor: str = field(repr=False)
    is_more: bool = False
    was_reset: bool = False


def walk(job: ChangesJob, tools: Tools) -> Done[Walked] | Again | Dead:
    """Read the feed to its end, or to a limit; a page that fails leaves the cursor before it."""
    return _Walk(job, tools).run()


class _Expired:
    """The provider knows the cursor no more."""


class _Walk:
    """One walk; used once."""

    def __init__(self, job: ChangesJob, tools: Tools) -> None:
        self._job = job
        self._tools = tools
        self._headers: tuple[Header, ...] | SignInFailed = ()
        self._is_renewed = False

    def run(self) -> Done[Walked] | Again | Dead:
        """Page after page."""
        self._headers = self._job.credentials.headers()
        if isinstance(self._headers, SignInFailed):
            return Again(f"sign-in at the source failed: {self._headers.reason}", trouble=True)
        events: list[SourceEvent] = []
        cursor, was_reset = self._job.cursor, False
        for number in range(MOST_PAGES):
            found = self._page(cursor)
            if isinstance(found, _Expired) and cursor and not was_reset:
                events, cursor, was_reset = [], "", True
                continue
            if isinstance(found, _Expired):
                return Again("the source knows its own cursor no more", trouble=True)
            if not isinstance(found, Page):
                return self._broken_off(found, events, cursor, was_reset=was_reset)
            events += found.events
            cursor = found.cursor
            if not found.is_more:
                return Done(Walked(tuple(events), cursor, was_reset=was_reset))
            if len(events) >= MOST_EVENTS:
                break
            if isinstance(self._tools.progress(number + 1, None), Cancelled):
                return Again("stopped", counted=False)
        return Done(Walked(tuple(events), cursor, is_more=True, was_reset=was_reset))

    def _broken_off(
        self, why: Again, events: list[SourceEvent], cursor: str, *, was_reset: bool
    ) -> Done[Walked] | Again:
        # What was read is kept: a feed of many pages would else never be read to its end.
        if not events:
            return why
        return Done(Walked(tuple(events), cursor, is_more=True, was_reset=was_reset))

    def _page(self, cursor: str) -> Page | _Expired | Again:
        status, body, outcome = self._asked(self._job.feed.ask(cursor, self._job.scope))
        if status == 401 and self._renew():
            return self._page(cursor)
        if status in self._job.feed.expired and cursor:
            return _Expired()
        if outcome is not None:
            return outcome
        page = read(self._job.feed, body, cursor)
        return page or Again("the source's feed gave no page", trouble=True)

    def _pulse(self) -> bool:
        return not isinstance(self._tools.progress(0, None), Cancelled)

    def _renew(self) -> bool:
        if self._is_renewed or isinstance(self._headers, SignInFailed):
            return False
        self._is_renewed = True
        newer = self._job.credentials.renewed(self._headers)
        if newer is None or isinstance(newer, SignInFailed):
            return False
        self._headers = newer
        return True

    def _asked(self, ask: Ask) -> tuple[int, bytes, Again | None]:
        assert not isinstance(self._headers, SignInFailed)  # noqa: S101 looked at before
        kind = (("content-type", "application/json"),) if ask.body else ()
        headers = (*self._headers, ("accept", "application/json"), *kind)
        request = Request(ask.method, self._job.base + ask.path, headers, ask.body)
        limits = Limits(_TIMEOUT_S, _TIMEOUT_S)
        point("changes.request.before")
        with self._tools.http.open(
            request, target=self._job.target, limits=limits, pulse=self._pulse
        ) as answer:
            point("changes.request.after")
            return self._answered(answer)

    def _answered(self, answer: Answer | Trouble) -> tuple[int, bytes, Again | None]:
        if isinstance(answer, Trouble):
            return (
                0,
                b"",
                Again(f"no answer from the source ({type(answer).__name__})", trouble=True),
            )
        status = answer.status
        if status >= _FIRST_ERROR:
            told = dict(answer.headers).get("retry-after", "")
            wait_s = retry_after(told, self._tools.clock.now())
            is_ours = status < _SERVER_ERROR and status != 429
            reason = f"{status} at the source's feed"
            again = Again(reason, wait_s=wait_s, everyone=wait_s is not None, trouble=not is_ours)
            return status, b"", again
        body = bytearray()
        if isinstance(answer.pour(body.extend, limit_bytes=_LARGEST_PAGE_BYTES), Whole):
            return status, bytes(body), None
        return status, b"", Again("a page of the source's feed broke off", trouble=True)

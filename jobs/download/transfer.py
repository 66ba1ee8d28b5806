"""One transfer into a temporary file: redirects, credentials, resuming, limits."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import httpx

from app.points import point
from domain.outcomes import Again, Dead
from jobs.download.content import Received
from jobs.download.partial import Partial, begin, packing, received, short
from jobs.download.status import NOT_ALLOWED, answered, larger_than, troubled
from jobs.download.trust import is_source, is_trusted, target
from jobs.download.values import DownloadJob, DownloadSettings
from jobs.outbound import parse
from jobs.tools import (
    AddressRefused,
    Answer,
    Broken,
    Cancelled,
    Garbled,
    Header,
    Limits,
    Poured,
    Request,
    SignInFailed,
    TooLarge,
    Tools,
    Trouble,
    Whole,
)

_MOST_REDIRECTS = 5
_MOST_RESUMPTIONS = 3
_PROGRESS_EVERY_S = 1.0
_REDIRECTS = frozenset({301, 302, 303, 307, 308})


class Watch:
    """Tells the progress about once a second, and remembers that the work was cancelled."""

    def __init__(self, tools: Tools, total_bytes: int | None) -> None:
        self._tools = tools
        self._told_at = float("-inf")
        self.total_bytes = total_bytes
        self.done_bytes = 0
        self.cancelled: Cancelled | None = None

    def pulse(self) -> bool:
        """Whether to go on."""
        now = self._tools.clock.monotonic()
        if self.cancelled is None and now - self._told_at >= _PROGRESS_EVERY_S:
            self._told_at = now
            self.cancelled = self._tools.progress(self.done_bytes, self.total_bytes)
        return self.cancelled is None


@dataclass(frozen=True, slots=True)
class _Resume:
    """The connection broke after some bytes that the source can go on from."""

    broken: Again


class Transfer:
    """One attempt to bring the bytes over; used once."""

    def __init__(self, job: DownloadJob, tools: Tools, path: Path) -> None:
        self._job = job
        self._tools = tools
        self._path = path
        self._settings: DownloadSettings = job.settings
        self._watch = Watch(tools, job.size_bytes)
        self._began_s = tools.clock.monotonic()
        self._headers: tuple[Header, ...] | SignInFailed = ()
        self._is_renewed = False
        self._is_relinked = False

    def run(self) -> Received | Again | Dead:
        """The bytes, whole by the source's own account, or why not."""
        self._headers = self._settings.credentials.headers()
        if isinstance(self._headers, SignInFailed):
            return _sign_in_needed(self._headers.reason)
        link = self._first_link()
        if isinstance(link, Again):
            return link
        with self._path.open("w+b") as file:
            return self._resumed(link, Partial(file))

    def _first_link(self) -> str | Again:
        # A link that has run out once is not asked again: a later attempt begins with a new one.
        if self._job.attempt > 1 and self._settings.fresh_link is not None:
            return self._fresh_link()
        return self._job.url

    def _fresh_link(self) -> str | Again:
        assert self._settings.fresh_link is not None  # noqa: S101 asked by the callers
        self._is_relinked = True
        return self._settings.fresh_link(self._job) or Again("the source gave no fresh link")

    def _resumed(self, link: str, partial: Partial) -> Received | Again | Dead:
        for number in range(_MOST_RESUMPTIONS + 1):
            before_bytes = partial.size_bytes
            result = self._followed(link, partial)
            if not isinstance(result, _Resume):
                return result
            if number == _MOST_RESUMPTIONS or partial.size_bytes <= before_bytes:
                return result.broken
        raise AssertionError("the last round returns")

    def _followed(self, link: str, partial: Partial) -> Received | Again | Dead | _Resume:
        """Follow redirects, one renewal of credentials and one fresh link."""
        first = parse(link)
        if isinstance(first, AddressRefused) or not is_source(self._settings, first):
            return Dead(NOT_ALLOWED)
        url, redirects = first, 0
        while True:
            step = self._request(url, partial, with_proof=is_trusted(self._settings, url, first))
            if not isinstance(step, httpx.URL):
                return step
            redirects += step is not url
            if redirects > _MOST_REDIRECTS:
                return Again("more than 5 redirects at the source", trouble=True)
            url = step

    def _request(
        self, url: httpx.URL, partial: Partial, *, with_proof: bool
    ) -> Received | Again | Dead | _Resume | httpx.URL:
        """One request; an address as result means: go there (or here again)."""
        headers = (*self._asked(partial), *(self._own_headers() if with_proof else ()))
        point("download.request.before")
        with self._tools.http.open(
            Request("GET", str(url), headers),
            target=target(self._settings),
            limits=self._limits(),
            pulse=self._watch.pulse,
        ) as answer:
            point("download.request.after")
            if isinstance(answer, Trouble):
                return self._stopped(troubled(answer))
            if answer.status in _REDIRECTS:
                return self._redirected(url, answer)
            if answer.status in {200, 203, 206}:
                return self._body(answer, partial)
            return self._refused(url, answer, partial, with_proof=with_proof)

    def _refused(
        self, url: httpx.URL, answer: Answer, partial: Partial, *, with_proof: bool
    ) -> Again | Dead | httpx.URL:
        match answer.status:
            case 401 if with_proof and not self._is_renewed:
                return self._renewed(url)
            case 401:
                return _sign_in_needed("sign-in needed: the source answered 401")
            case 403 | 410 if self._settings.fresh_link is not None and not self._is_relinked:
                link = self._fresh_link()
                return link if isinstance(link, Again) else self._relinked(link)
            case 416 if partial.size_bytes:
                partial.restart()
                partial.etag = ""
                return url
            case _:
                return answered(answer, self._job, now=self._tools.clock.now())

    def _renewed(self, url: httpx.URL) -> Again | httpx.URL:
        self._is_renewed = True
        newer = self._settings.credentials.renewed(self._own_headers())
        if newer is None:
            return _sign_in_needed("sign-in needed: the source answered 401")
        if isinstance(newer, SignInFailed):
            return _sign_in_needed(newer.reason)
        self._headers = newer
        return url

    def _relinked(self, link: str) -> Dead | httpx.URL:
        url = parse(link)
        if isinstance(url, AddressRefused) or not is_source(self._settings, url):
            return Dead(NOT_ALLOWED)
        return url

    def _redirected(self, url: httpx.URL, answer: Answer) -> Again | Dead | httpx.URL:
        try:
            place = str(url.join(dict(answer.headers).get("location", "")))
        except (httpx.InvalidURL, ValueError):
            return Again("the source redirects to no valid address", trouble=True)
        there = parse(place)
        if isinstance(there, AddressRefused):
            return Dead(NOT_ALLOWED)
        if url.scheme == "https" and there.scheme == "http":
            return Again("the source redirects from https to http", trouble=True)
        return there

    def _body(self, answer: Answer, partial: Partial) -> Received | Again | Dead | _Resume:
        if (refusal := begin(answer, partial)) is not None:
            return refusal
        limit_bytes = self._settings.max_size_bytes
        if partial.full_size_bytes is not None and partial.full_size_bytes > limit_bytes:
            return Dead(larger_than(limit_bytes))
        self._watch.total_bytes = partial.full_size_bytes or self._job.size_bytes
        point("download.body.begun")
        ended = answer.pour(self._sink(partial), limit_bytes=limit_bytes - partial.size_bytes)
        point("download.body.after")
        return self._ended(ended, dict(answer.headers), partial)

    def _ended(
        self, ended: Poured, headers: dict[str, str], partial: Partial
    ) -> Received | Again | Dead | _Resume:
        match ended:
            case Whole() if partial.full_size_bytes in {None, partial.size_bytes}:
                return received(partial)
            case TooLarge():
                return Dead(larger_than(self._settings.max_size_bytes))
            case Garbled(reason=reason):
                return Again(reason)
            case Broken() if self._can_resume(headers, partial):
                return _Resume(Again(short(partial)))
            case Whole() | Broken():
                return Again(short(partial))
            case _:
                return self._stopped(troubled(ended))

    def _sink(self, partial: Partial) -> Callable[[bytes], None]:
        def sink(piece: bytes) -> None:
            partial.add(piece)
            self._watch.done_bytes = partial.size_bytes

        return sink

    def _can_resume(self, headers: dict[str, str], partial: Partial) -> bool:
        """Only where a change in between would be noticed, by a strong tag or the known hash."""
        offers = headers.get("accept-ranges", "").lower() == "bytes" or bool(partial.etag)
        is_noticed = bool(partial.etag or self._job.sha256)
        return offers and is_noticed and partial.size_bytes > 0 and not packing(headers)

    def _asked(self, partial: Partial) -> tuple[Header, ...]:
        # Unpacked bytes are what is hashed and resumed: a source that packs anyway is understood.
        asked: tuple[Header, ...] = (("accept-encoding", "identity"),)
        if partial.size_bytes:
            asked += (("range", f"bytes={partial.size_bytes}-"),)
            asked += (("if-range", partial.etag),) if partial.etag else ()
        return asked

    def _own_headers(self) -> tuple[Header, ...]:
        return () if isinstance(self._headers, SignInFailed) else self._headers

    def _stopped(self, result: Again | Dead) -> Again | Dead:
        if self._watch.cancelled is not None:
            return Again(self._watch.cancelled.reason, counted=False)
        return result

    def _limits(self) -> Limits:
        left_s = None
        if self._settings.total_s is not None:
            spent_s = self._tools.clock.monotonic() - self._began_s
            left_s = max(self._settings.total_s - spent_s, 0.0)
        return Limits(left_s, self._settings.timeout_s, self._settings.min_rate_bytes_s)


def _sign_in_needed(reason: str) -> Again:
    # Not counted: no file dies because a token ran out; all of the source's wait together.
    return Again(reason, counted=False, trouble=True)

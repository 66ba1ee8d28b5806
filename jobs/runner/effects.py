"""From a claim to what came of it: the effect is given its job and its tools, no database."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field, replace
from typing import assert_never

import msgspec

from app.artifacts import Scratch
from app.telemetry import log
from domain.commands import Accepted, JobOutcome, MessageOutcome, Stored
from domain.events import Artifact
from domain.ids import derive
from domain.outcomes import Again, Dead, Done, Unclear
from domain.recipes import Recipe, Step
from domain.states import ORIGINAL, made_key
from jobs.download import Downloaded, DownloadJob, DownloadSettings, download
from jobs.notify import Attempt, Delivered, NotifyJob, NotifySettings, ask, notify
from jobs.runner.claims import ClaimedJob, ClaimedMessage
from jobs.runner.holds import Held
from jobs.sandbox import Sandbox
from jobs.steps import NotApplicable
from jobs.tools import Answer, Credentials, Http, Limits, Request, Stopped, Target, Tools, Trouble
from jobs.transform import Made, StepJob, transform

_NAMELESS = Again("the configuration does not name it any more", counted=False)


@dataclass(frozen=True, slots=True)
class Result:
    """What came of a claim. ``exchange`` is the record of what went over the wire, encoded."""

    outcome: JobOutcome | MessageOutcome
    exchange: bytes | None = None
    reached: bool = False


@dataclass(frozen=True, slots=True)
class Settings:
    """What effects need to know of the configuration, by names present and former."""

    key: bytes
    recipes: Mapping[str, Recipe]
    sources: Mapping[str, DownloadSettings]
    destinations: Mapping[str, NotifySettings]
    step_credentials: Mapping[str, Credentials] = field(default_factory=dict)


class Effects:
    """Carries claims out. ``tools`` are those of the process; each job gets its own scratch."""

    def __init__(
        self, settings: Settings, tools: Tools, *, scratch: Scratch, sandbox: Sandbox
    ) -> None:
        self._settings = settings
        self._tools = tools
        self._scratch = scratch
        self._sandbox = sandbox

    def perform(self, held: Held) -> Result:
        """Do the work; a defect of ours is an attempt that failed, never a lost claim."""
        try:
            http = _Leased(self._tools.http, held)
            tools = replace(self._tools, http=http, progress=held.progress)
            if isinstance(held.claim, ClaimedMessage):
                return self._send(held.claim, tools, held.span)
            with self._scratch.folder() as folder:
                return Result(self._made(held.claim, replace(tools, scratch=folder)))
        except Exception as error:
            log.exception("job.broken", work_id=held.claim.lease.id)
            return Result(Again(f"internal error ({type(error).__name__})"))

    def _made(self, claim: ClaimedJob, tools: Tools) -> JobOutcome:
        match claim.job.kind:
            case "download":
                return self._download(claim, tools)
            case "transform":
                return self._transform(claim, tools)
            case _:
                assert_never(claim.job.kind)

    # -- downloads --------------------------------------------------------------------------------

    def _download(self, claim: ClaimedJob, tools: Tools) -> JobOutcome:
        settings = self._settings.sources.get(claim.file.source)
        if settings is None:
            return _NAMELESS
        version = claim.version
        job = DownloadJob(
            job_id=claim.lease.id,
            source=claim.file.source,
            attempt=claim.lease.attempt,
            file_id=claim.file.file_id,
            version=version.version,
            name=version.name,
            url=version.url,
            settings=settings,
            size_bytes=version.size_bytes,
            sha256=version.sha256,
            media_type=version.media_type,
        )
        outcome = download(job, tools)
        return Done(self._original(claim, outcome.result)) if isinstance(outcome, Done) else outcome

    def _original(self, claim: ClaimedJob, got: Downloaded) -> Stored:
        artifact = Artifact(
            id=derive(self._settings.key, "art", claim.lease.stream, got.sha256, ORIGINAL),
            name=ORIGINAL,
            sha256=got.sha256,
            size_bytes=got.size_bytes,
            media_type=got.media_type,
            note=got.note,
        )
        return Stored((artifact,))

    # -- transformations --------------------------------------------------------------------------

    def _transform(self, claim: ClaimedJob, tools: Tools) -> JobOutcome:
        version = claim.version
        step = self._step(claim)
        original = claim.file.made.get(made_key(version.original, ORIGINAL))
        if step is None or not original:
            return Dead("the step or the original is not known")
        job = StepJob(
            job_id=claim.lease.id,
            step=step,
            input_sha256=version.original,
            input_size_bytes=original[0].size_bytes,
            media_type=version.media_type,
            name=version.name,
            attempt=claim.lease.attempt,
            credentials=self._settings.step_credentials,
        )
        outcome = transform(job, tools, self._sandbox)
        match outcome:
            case Done(result=NotApplicable(reason=reason)):
                return Done(Stored(reason=reason))
            case Done(result=tuple() as made):
                return Done(Stored(self._artifacts(claim, step, made)))
            case Again() | Dead():
                return outcome
            case _:
                raise TypeError(type(outcome))

    def _step(self, claim: ClaimedJob) -> Step | None:
        recipe = self._settings.recipes.get(claim.job.recipe)
        steps = recipe.steps if recipe else ()
        named = (s for s in steps if (s.name, s.digest) == (claim.job.name, claim.job.step))
        return next(named, None)

    def _artifacts(
        self, claim: ClaimedJob, step: Step, made: tuple[Made, ...]
    ) -> tuple[Artifact, ...]:
        about = (claim.lease.stream, claim.version.original, step.digest)
        return tuple(
            Artifact(
                id=derive(self._settings.key, "art", *about, output.name),
                name=output.name,
                sha256=output.sha256,
                size_bytes=output.size_bytes,
                media_type=output.media_type,
                note=output.note,
            )
            for output in made
        )

    # -- messages ---------------------------------------------------------------------------------

    def _send(self, claim: ClaimedMessage, tools: Tools, trace: str) -> Result:
        destination = self._settings.destinations.get(claim.message.destination)
        if destination is None:
            return Result(_NAMELESS)
        job = NotifyJob(claim.lease.id, destination, claim.lease.attempt, claim.body, trace=trace)
        if claim.message.phase == "unclear" and destination.ask_url:
            answer = ask(job, tools)
            if not isinstance(answer, Again):
                return Result(_of_message(answer), reached=True)
        attempt, outcome = notify(job, tools)
        reached = attempt.status is not None or isinstance(outcome, Unclear)
        return Result(_of_message(outcome), _encoded(attempt), reached)


def _of_message(outcome: Done[Delivered] | Again | Dead | Unclear) -> MessageOutcome:
    if isinstance(outcome, Done):
        return Done(Accepted(outcome.result.reference))
    return outcome


def _encoded(attempt: Attempt) -> bytes:
    return msgspec.json.encode(attempt)


class _Leased:
    """HTTP for as long as the lease holds: looked at right before the first byte leaves."""

    def __init__(self, http: Http, held: Held) -> None:
        self._http = http
        self._held = held

    @property
    def user_agent(self) -> str:
        return self._http.user_agent

    @contextmanager
    def _refused(self) -> Iterator[Answer | Trouble]:
        yield Stopped()

    def open(
        self, request: Request, *, target: Target, limits: Limits, pulse: Callable[[], bool]
    ) -> AbstractContextManager[Answer | Trouble]:
        if self._held.is_over:
            return self._refused()
        return self._http.open(request, target=target, limits=limits, pulse=pulse)

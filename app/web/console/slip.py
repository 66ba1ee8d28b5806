"""The one line of time of a file: what came, what was decided, what was tried, what was sent."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Literal

from app.web.api.arrivals import DeliveryOut
from app.web.api.log import LogEvent
from app.web.api.shapes import FileOut, JobOut, MessageOut

Lane = Literal["delivery", "event", "job", "message"]

# What each event says to people; its data is shown beside it.
EVENT_WORDS = {
    "VersionReported": "The source announced a version",
    "FileDeleted": "The source deleted the file",
    "FileRestored": "The source restored the file",
    "FileRenamed": "The source renamed the file",
    "EventIgnored": "The source told something that starts nothing here",
    "RunStarted": "A run began",
    "WorkRecalled": "Unfinished work was called back",
    "StepsOrdered": "The original is there: steps were ordered",
    "OriginalStored": "The original was stored",
    "StepFinished": "A step is done",
    "JobDeferred": "A try failed: it is tried again",
    "JobDied": "A job gave up",
    "JobStopped": "A job stopped as it was asked to",
    "JobRetried": "An operator had a job tried again",
    "JobCancelled": "An operator cancelled a job",
    "JobDiscarded": "An operator discarded a job",
    "VersionCompleted": "The version is complete",
    "VersionFailed": "The version failed",
    "FileTold": "Receivers are told of the file itself",
    "MessageDelivered": "A message was delivered",
    "MessageDeferred": "A message was not taken: it is sent again",
    "MessageUnclear": "A message was sent, and no answer came",
    "MessageDied": "A message gave up",
    "MessageResolved": "An operator settled a message",
    "FileHeld": "An operator put a hold on the file",
    "FileReleased": "An operator lifted the hold",
    "FileErased": "Content, names and message bodies were removed",
    "ContentExpired": "Artifacts or message bodies were kept for their time, and are gone",
    "Paused": "An operator paused a part",
    "Resumed": "An operator resumed a part",
    "TokenCreated": "Access was given",
    "TokenRevoked": "Access was taken away",
    "ConflictResolved": "An operator settled a conflict",
    "BodyShown": "An admin looked at a whole body",
    "CampaignBegun": "An operator ordered many messages to be sent again",
    "CampaignEnded": "An order about many messages came to its end",
    "DeliveryQuarantined": "A delivery went into quarantine",
    "SubscriptionNoticed": "The source told of its subscription",
    "RecipeDefined": "A recipe was recorded",
    "ConfigurationChanged": "It was started under another configuration",
    "InstallationCreated": "The installation was made",
    "LogRestored": "The log was restored from a copy",
}
VERDICTS = {
    "accepted": "A delivery was accepted",
    "duplicate": "A repeat was answered with the first receipt",
    "conflict": "A delivery with other content under a known id: in quarantine",
    "ignored": "A delivery that starts nothing here",
    "stale": "A delivery about something older than what is known",
    "rejected": "A delivery was rejected",
    "failed": "A delivery could not be stored",
}
_BAD = {"JobDied", "MessageDied", "VersionFailed"}
_UNSURE = {"JobDeferred", "MessageDeferred", "MessageUnclear", "DeliveryQuarantined"}
_GOOD = {"VersionCompleted", "MessageDelivered", "OriginalStored", "StepFinished"}
_ORDER: dict[Lane, int] = {"delivery": 0, "job": 1, "message": 1, "event": 2}


@dataclass(frozen=True, slots=True)
class Stamp:
    """One mark on the slip. ``words`` are of ``language``; ``notes`` are shown as they are."""

    at: str
    lane: Lane
    words: str
    mood: Literal["", "good", "bad", "unsure"] = ""
    notes: tuple[tuple[str, str], ...] = field(default=())
    reason: str = ""
    link: str = ""


def timeline(
    file: FileOut, deliveries: Sequence[DeliveryOut], events: Sequence[LogEvent]
) -> list[Stamp]:
    """All stamps of a file, the first first."""
    found = [*_arrived(deliveries), *_recorded(events)]
    for version in file.versions:
        found += [stamp for job in version.jobs for stamp in _worked(job)]
        found += [stamp for message in version.messages for stamp in _sent(message)]
    found += [stamp for message in file.messages for stamp in _sent(message)]
    return sorted(found, key=_place)


def event_words(kind: str) -> str:
    """What an event of this kind says."""
    return EVENT_WORDS.get(kind, kind)


def mood_of(kind: str) -> Literal["", "good", "bad", "unsure"]:
    """How an event of this kind is meant."""
    if kind in _BAD:
        return "bad"
    if kind in _GOOD:
        return "good"
    return "unsure" if kind in _UNSURE else ""


def _place(stamp: Stamp) -> tuple[str, int]:
    return stamp.at, _ORDER[stamp.lane]


def _arrived(deliveries: Sequence[DeliveryOut]) -> Iterator[Stamp]:
    for told in deliveries:
        notes = [("event", told.event_id), ("delivery", told.delivery_id), ("key", told.key_id)]
        yield Stamp(
            at=told.received_at or "",
            lane="delivery",
            words=VERDICTS.get(told.verdict, told.verdict),
            mood="unsure" if told.verdict == "conflict" and not told.settled else "",
            notes=tuple((name, value) for name, value in notes if value),
            reason=told.reason,
            link=f"/console/deliveries/{told.id}",
        )


def _recorded(events: Sequence[LogEvent]) -> Iterator[Stamp]:
    for event in events:
        data = event.data
        notes = [
            (name, str(data[name]))
            for name in ("version", "run", "step", "job", "message", "attempt", "name", "reference")
            if data.get(name)
        ]
        if event.cause.operator:
            notes.append(("by", event.cause.operator))
        yield Stamp(
            at=event.at or "",
            lane="event",
            words=event_words(event.type),
            mood=mood_of(event.type),
            notes=(*notes, ("position", str(event.position))),
            reason=event.cause.reason or str(data.get("reason", "")),
            link=f"/console/log?before={event.position + 1}",
        )


def _worked(job: JobOut) -> Iterator[Stamp]:
    for attempt in job.attempts:
        yield Stamp(
            at=attempt.at or "",
            lane="job",
            words="A try of a download began"
            if job.kind == "download"
            else "A try of a step began",
            mood="unsure" if attempt.error else "",
            notes=(
                ("job", job.name or job.kind),
                ("attempt", str(attempt.number)),
                ("outcome", attempt.outcome),
            ),
            reason=attempt.error,
        )


def _sent(message: MessageOut) -> Iterator[Stamp]:
    for attempt in message.attempts:
        status = (("status", str(attempt.status)),) if attempt.status else ()
        yield Stamp(
            at=attempt.at or "",
            lane="message",
            words="A message was sent",
            mood="unsure" if attempt.error else "",
            notes=(
                ("destination", message.destination),
                ("attempt", str(attempt.number)),
                ("outcome", attempt.outcome),
                *status,
            ),
            reason=attempt.error,
            link=f"/console/messages/{message.id}",
        )

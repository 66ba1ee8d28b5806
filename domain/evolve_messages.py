"""What messages, and the ends of versions that order them, make of a file."""

from __future__ import annotations

from typing import Any

from domain import events as e
from domain.states import (
    NOTIFY,
    File,
    Message,
    Version,
    changed,
    completion_messages,
    meaning_of,
    with_message,
    with_version,
)
from domain.work import moved_message, moved_version


def with_messages(file: File, event: e.Told, about: Version | None, kind: e.MessageType) -> File:
    is_current = about is None or about.version == file.view.current
    meaning = meaning_of(kind, about) if is_current and kind != "file.renamed" else ""
    messages = {
        order.id: Message(
            id=order.id,
            destination=order.destination,
            type=kind,
            version=about.version if about else "",
            sequence=event.sequence,
            phase="pending",
            ordered_ms=event.at_ms,
            due_ms=event.at_ms,
            meaning=meaning,
            facts=len(file.facts),
            run=about.run if about else 0,
        )
        for order in event.messages
    }
    return changed(file, messages={**file.messages, **messages}, sequence=event.sequence)


def version_completed(file: File, event: e.VersionCompleted) -> File:
    version = file.versions[event.version]
    version = changed(
        version,
        phase=moved_version(version.phase, "notifying"),
        result=version.outputs,
        completed_ms=event.at_ms,
        step="",
        error="",
    )
    file = with_messages(with_version(file, version), event, version, "file.version.completed")
    return _settled(file, version)


def version_failed(file: File, event: e.VersionFailed) -> File:
    version = file.versions[event.version]
    version = changed(
        version,
        phase=moved_version(version.phase, "failed"),
        step=event.step,
        error=event.reason,
    )
    file = with_version(file, version)
    return with_messages(file, event, version, "file.version.failed")


def file_told(file: File, event: e.FileTold) -> File:
    return with_messages(file, event, None, event.type)


def _notified(file: File, message: Message) -> File:
    """The file with this message, and its version completed or failed if it was the last one."""
    file = with_message(file, message)
    version = file.versions.get(message.version)
    return file if version is None else _settled(file, version)


def _settled(file: File, version: Version) -> File:
    """Complete the version once its last message has ended; a dead one fails it."""
    own = completion_messages(file, version)
    if version.phase != "notifying" or any(m.is_open for m in own):
        return file
    dead = next((m for m in own if m.phase == "dead"), None)
    if dead is None:
        phase = moved_version(version.phase, "completed")
        return with_version(file, changed(version, phase=phase))
    phase = moved_version(version.phase, "failed")
    step = NOTIFY + dead.destination
    return with_version(file, changed(version, phase=phase, step=step, error=dead.error))


def _message_ended(file: File, event: e.MessageEnded, phase: Any, **more: Any) -> File:
    message = file.messages[event.message]
    message = changed(
        message,
        phase=moved_message(message.phase, phase),
        attempts=event.attempt,
        epoch=event.epoch,
        **more,
    )
    return _notified(file, message)


def message_delivered(file: File, event: e.MessageDelivered) -> File:
    known = file.messages[event.message].reference
    return _message_ended(
        file, event, "delivered", reached=True, error="", ended_ms=event.at_ms,
        reference=event.reference or known, erased=_is_gone(file.messages[event.message]),
    )  # fmt: skip


def _is_gone(message: Message) -> bool:
    """Whether its bytes are gone once it has arrived: what tells of an erasure names the file."""
    return message.erased or message.type == "file.erased"


def message_deferred(file: File, event: e.MessageDeferred) -> File:
    reached = event.reached or file.messages[event.message].reached
    return _message_ended(
        file, event, "waiting", due_ms=event.due_ms, error=event.reason, reached=reached
    )


def message_unclear(file: File, event: e.MessageUnclear) -> File:
    phase = "held" if event.held else "unclear"
    return _message_ended(file, event, phase, due_ms=event.due_ms, error=event.reason, reached=True)


def message_died(file: File, event: e.MessageDied) -> File:
    reached = event.reached or file.messages[event.message].reached
    return _message_ended(
        file, event, "dead", error=event.reason, reached=reached, ended_ms=event.at_ms
    )


def message_resolved(file: File, event: e.MessageResolved) -> File:
    message = file.messages[event.message]
    file = _reopened_notifying(file, message)
    match event.outcome:
        case "resend":
            return with_message(file, _resent(message, event.at_ms))
        case "delivered":
            phase = moved_message(message.phase, "delivered")
            gone = _is_gone(message)
            done = changed(
                message, phase=phase, reached=True, error="", ended_ms=event.at_ms, erased=gone
            )
            return _notified(file, done)
        case "discard":
            phase = moved_message(message.phase, "discarded")
            return _notified(file, changed(message, phase=phase, ended_ms=event.at_ms))


def _resent(message: Message, at_ms: int) -> Message:
    phase = moved_message(message.phase, "pending")
    return changed(message, phase=phase, attempts=0, ordered_ms=at_ms, due_ms=at_ms, ended_ms=0)


def _reopened_notifying(file: File, message: Message) -> File:
    """A version that failed for its messages alone is being told of again."""
    version = file.versions.get(message.version)
    if version is None or version.phase != "failed" or not version.step.startswith(NOTIFY):
        return file
    if message not in completion_messages(file, version):
        return file
    phase = moved_version(version.phase, "notifying")
    return with_version(file, changed(version, phase=phase, step="", error=""))

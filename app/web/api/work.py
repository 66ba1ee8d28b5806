"""Jobs and messages: seen, tried again, cancelled, settled."""

from __future__ import annotations

from typing import Any, Literal

from litestar import get, post
from litestar.params import FromPath, FromQuery, JSONBody
from msgspec import structs

from app.store.reading import files, work
from app.store.reading.work import Work, WorkFilter, WorkTable
from app.web.api.office import (
    Asker,
    Cursor,
    Here,
    InState,
    Limit,
    Listing,
    Office,
    Reasoned,
    instant_ms,
    paged,
    there,
)
from app.web.api.orders import (
    Call,
    IdempotencyKey,
    Ordered,
    once,
    order,
)
from app.web.api.shapes import JobOut, MessageOut, job_row_out, message_row_out
from app.web.auth import Who, needs
from domain.commands import (
    CancelJob,
    ResolveMessage,
    RetryJob,
)

_TAGS = ["work"]
_MOST_ATTEMPTS = 1000

Outcome = Literal["delivered", "resend", "discard"]


class ResolveIn(Reasoned, forbid_unknown_fields=True):
    """How a message ends: it arrived after all, it is sent again, or it is given up."""

    outcome: Outcome = "resend"
    force: bool = False


class RedeliverIn(Reasoned, forbid_unknown_fields=True):
    """``force`` sends what a newer version has superseded."""

    force: bool = False


@get("/jobs", guards=[needs("viewer")], sync_to_thread=True, summary="Jobs", tags=_TAGS)
def job_list(
    office: Here,
    who: Asker,
    in_state: InState = "",
    kind: FromQuery[str] = "",
    name: FromQuery[str] = "",
    source: FromQuery[str] = "",
    limit: Limit = 50,
    cursor: Cursor = "",
) -> Listing[JobOut]:
    """Jobs, the last ordered first; without their attempts, which one job has."""
    wanted = WorkFilter(state=in_state, kind=kind, name=name, source=source, sources=who.sources)
    with office.store.read() as connection:
        return paged(
            limit,
            cursor,
            lambda ask: work.jobs(connection, wanted, ask),
            lambda row: job_row_out(row, {}),
        )


@get("/jobs/{job:str}", guards=[needs("viewer")], sync_to_thread=True, summary="A job", tags=_TAGS)
def job_one(office: Here, who: Asker, job: FromPath[str]) -> JobOut:
    """A job with all its attempts."""
    row = _visible(office, who, "job", job)
    with office.store.read() as connection:
        return job_row_out(row, files.attempts(connection, [job], limit=_MOST_ATTEMPTS))


@post(
    "/jobs/{job:str}/retry",
    guards=[needs("operator")],
    status_code=200,
    sync_to_thread=True,
    summary="Dead work again",
    tags=_TAGS,
)
def job_retry(
    office: Here, who: Asker, job: FromPath[str], data: JSONBody[Reasoned], key: IdempotencyKey = ""
) -> Ordered:
    """Try a dead, cancelled or discarded job again, or a waiting one at once."""
    row = _visible(office, who, "job", job)
    command = RetryJob(stream=row.stream, cause=who.cause(data.reason), job=job)
    return once(
        office, who, Call(f"retry {job}", data, key), lambda: order(office, command), Ordered
    )


@post(
    "/jobs/{job:str}/cancel",
    guards=[needs("operator")],
    status_code=200,
    sync_to_thread=True,
    summary="Stop a job",
    tags=_TAGS,
)
def job_cancel(
    office: Here, who: Asker, job: FromPath[str], data: JSONBody[Reasoned], key: IdempotencyKey = ""
) -> Ordered:
    """Stop an open job; one that runs is asked to."""
    row = _visible(office, who, "job", job)
    command = CancelJob(stream=row.stream, cause=who.cause(data.reason), job=job)
    call = Call(f"cancel {job}", data, key)
    return once(office, who, call, lambda: order(office, command), Ordered)


@get("/messages", guards=[needs("receiver")], sync_to_thread=True, summary="Messages", tags=_TAGS)
def message_list(
    office: Here,
    who: Asker,
    destination: FromQuery[str] = "",
    in_state: InState = "",
    reference: FromQuery[str] = "",
    source: FromQuery[str] = "",
    answer: FromQuery[str] = "",
    since: FromQuery[str] = "",
    until: FromQuery[str] = "",
    limit: Limit = 50,
    cursor: Cursor = "",
) -> Listing[MessageOut]:
    """Messages, the last ordered first; a receiver sees its own.

    ``answer`` is text that stands in the record of an attempt: its answer, reason or headers.
    """
    wanted = WorkFilter(
        # What went over the wire to a receiver is the operator's to see.
        answer=answer if who.destination is None else "",
        since_ms=instant_ms("since", since),
        until_ms=instant_ms("until", until),
        state=in_state,
        name=destination if who.destination is None else who.destination,
        source=source,
        reference=reference,
        sources=who.sources,
    )
    with office.store.read() as connection:
        return paged(
            limit,
            cursor,
            lambda ask: work.messages(connection, wanted, ask),
            lambda row: message_row_out(row, {}),
        )


@get(
    "/messages/{message:str}",
    guards=[needs("receiver")],
    sync_to_thread=True,
    summary="A message",
    tags=_TAGS,
)
def message_one(office: Here, who: Asker, message: FromPath[str]) -> MessageOut:
    """A message with its exact bytes and all its attempts."""
    row = _visible(office, who, "message", message)
    with office.store.read() as connection:
        tries = files.attempts(connection, [message], limit=_MOST_ATTEMPTS)
        body = work.body(connection, message)
    if who.destination is not None:
        tries = {}  # what went over the wire to us is the operator's to see
    shown = message_row_out(row, tries)
    return structs.replace(shown, body=None if body is None else body.decode("utf-8", "replace"))


@post(
    "/messages/{message:str}/redeliver",
    guards=[needs("operator")],
    status_code=200,
    sync_to_thread=True,
    summary="The same bytes again",
    tags=_TAGS,
)
def message_redeliver(
    office: Here,
    who: Asker,
    message: FromPath[str],
    data: JSONBody[RedeliverIn],
    key: IdempotencyKey = "",
) -> Ordered:
    """Send a message again under the same id; ``force`` for one that is superseded."""
    row = _visible(office, who, "message", message)
    command = resolving(row, who, data.reason, "resend", force=data.force)
    call = Call(f"redeliver {message}", data, key)
    return once(office, who, call, lambda: order(office, command), Ordered)


@post(
    "/messages/{message:str}/resolve",
    guards=[needs("operator")],
    status_code=200,
    sync_to_thread=True,
    summary="Settle an unclear message",
    tags=_TAGS,
)
def message_resolve(
    office: Here,
    who: Asker,
    message: FromPath[str],
    data: JSONBody[ResolveIn],
    key: IdempotencyKey = "",
) -> Ordered:
    """Say how it ended: delivered after all, to be sent again, or given up."""
    row = _visible(office, who, "message", message)
    command = resolving(row, who, data.reason, data.outcome, force=data.force)
    call = Call(f"resolve {message}", data, key)
    return once(office, who, call, lambda: order(office, command), Ordered)


def resolving(row: Work, who: Who, reason: str, outcome: Outcome, *, force: bool) -> ResolveMessage:
    """The command that ends a message by hand."""
    return ResolveMessage(
        stream=row.stream,
        cause=who.cause(reason),
        message=row.id,
        outcome=outcome,
        force=force,
    )


def _visible(office: Office, who: Who, kind: WorkTable, work_id: str) -> Work:
    with office.store.read() as connection:
        row = there(work.one(connection, kind, work_id))
    is_theirs = who.destination is None or (kind == "message" and row.name == who.destination)
    return there(row if is_theirs and who.sees(row.source) else None)


HANDLERS: list[Any] = [
    job_list,
    job_one,
    job_retry,
    job_cancel,
    message_list,
    message_one,
    message_redeliver,
    message_resolve,
]

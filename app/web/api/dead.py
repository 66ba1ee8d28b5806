"""Dead letters: by cause, tried again or given up, one, by filter or all; first dry."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any, Literal

from litestar import get, post
from litestar.params import JSONBody
from msgspec import Meta, Struct

from app.ledger.requests import Order
from app.store.reading import files, work
from app.store.reading.work import Work, WorkFilter, WorkTable
from app.web.api.office import Asker, Here, Listing, Office, Reasoned, at, instant_ms, there
from app.web.api.orders import Call, IdempotencyKey, once, try_out
from app.web.api.work import resolving
from app.web.auth import Who, needs
from domain.commands import AnyFileCommand, DiscardJob, Refusal, RetryJob

_TAGS = ["work"]
_MOST_AT_ONCE = 1000
_WAIT_S = 60.0

Make = Callable[[Work], AnyFileCommand]


class DeadFilter(Struct, forbid_unknown_fields=True, frozen=True):
    """Which dead letters: each field that is given narrows them down; none of them means all."""

    kind: Literal["", "job", "message"] = ""
    name: Annotated[str, Meta(max_length=200)] = ""
    source: Annotated[str, Meta(max_length=200)] = ""
    error: Annotated[str, Meta(max_length=4000)] = ""
    ended_before: Annotated[str, Meta(max_length=64)] = ""
    ids: Annotated[tuple[str, ...], Meta(max_length=1000)] = ()


class DeadIn(Reasoned, forbid_unknown_fields=True):
    """An order about dead letters; ``dry_run`` says what it would do."""

    filter: DeadFilter = DeadFilter()
    dry_run: bool = False


class CauseOut(Struct):
    """Dead letters that gave up for the same reason."""

    kind: str
    name: str
    error: str
    count: int
    oldest_at: str | None
    newest_at: str | None


class Bulk(Struct):
    """What became of an order about many: ``left`` says that there are more than fit into one."""

    dry_run: bool
    matched: int
    done: int
    refused: dict[str, int]
    left: bool
    ids: list[str]


@get(
    "/dead-letters",
    guards=[needs("viewer")],
    sync_to_thread=True,
    summary="What gave up, by cause",
    tags=_TAGS,
)
def dead_list(office: Here, who: Asker) -> Listing[CauseOut]:
    """Jobs and messages that gave up, grouped by what and why, the largest group first."""
    with office.store.read() as connection:
        causes = work.causes(connection, who.sources)
    return Listing(
        [
            CauseOut(c.kind, c.name, c.error, c.count, at(c.oldest_ms), at(c.newest_ms))
            for c in causes
        ]
    )


@post(
    "/dead-letters/retry",
    guards=[needs("operator")],
    status_code=200,
    sync_to_thread=True,
    summary="Try dead letters again",
    tags=_TAGS,
)
def dead_retry(office: Here, who: Asker, data: JSONBody[DeadIn], key: IdempotencyKey = "") -> Bulk:
    """Retry dead jobs and redeliver dead messages that match."""

    def make(row: Work) -> AnyFileCommand:
        if row.kind == "message":
            return resolving(row, who, data.reason, "resend", force=False)
        return RetryJob(stream=row.stream, cause=who.cause(data.reason), job=row.id)

    return _bulk(office, who, Call("retry dead", data, key), data, make)


@post(
    "/dead-letters/discard",
    guards=[needs("operator")],
    status_code=200,
    sync_to_thread=True,
    summary="Give dead letters up",
    tags=_TAGS,
)
def dead_discard(
    office: Here, who: Asker, data: JSONBody[DeadIn], key: IdempotencyKey = ""
) -> Bulk:
    """Discard dead jobs and messages that match: nothing of them is tried any more."""

    def make(row: Work) -> AnyFileCommand:
        if row.kind == "message":
            return resolving(row, who, data.reason, "discard", force=False)
        return DiscardJob(stream=row.stream, cause=who.cause(data.reason), job=row.id)

    return _bulk(office, who, Call("discard dead", data, key), data, make)


def _bulk(office: Office, who: Who, call: Call, data: DeadIn, make: Make) -> Bulk:
    if data.dry_run:
        return _tried(office, _dead(office, who, data.filter), make)
    return once(
        office, who, call, lambda: _done(office, _dead(office, who, data.filter), make), Bulk
    )


def _dead(office: Office, who: Who, wanted: DeadFilter) -> list[Work]:
    narrowed = WorkFilter(
        state="dead",
        name=wanted.name,
        source=wanted.source,
        error=wanted.error,
        ended_before_ms=instant_ms("ended_before", wanted.ended_before),
        ids=wanted.ids,
        sources=who.sources,
    )
    kinds: tuple[WorkTable, ...] = ("job", "message")
    found: list[Work] = []
    with office.store.read() as connection:
        for kind in kinds:
            if wanted.kind in {"", kind}:
                found += work.some(connection, kind, narrowed, limit=_MOST_AT_ONCE + 1)
    return found


def _tried(office: Office, found: list[Work], make: Make) -> Bulk:
    refused: dict[str, int] = {}
    done: list[str] = []
    with office.store.read() as connection:
        for row in found[:_MOST_AT_ONCE]:
            file = there(files.one(connection, row.stream))
            preview = try_out(office, file, make(row))
            if preview.would:
                done.append(row.id)
            else:
                refused[preview.reason] = refused.get(preview.reason, 0) + 1
    return _counted(found, done, refused, dry_run=True)


def _done(office: Office, found: list[Work], make: Make) -> Bulk:
    # Each by itself: one that is refused must not keep the others from being done.
    futures = [(row, office.ledger.submit(Order(make(row)))) for row in found[:_MOST_AT_ONCE]]
    refused: dict[str, int] = {}
    done: list[str] = []
    for row, future in futures:
        (answer,) = future.result(_WAIT_S)
        if isinstance(answer, Refusal):
            refused[answer.reason] = refused.get(answer.reason, 0) + 1
        else:
            done.append(row.id)
    return _counted(found, done, refused, dry_run=False)


def _counted(found: list[Work], done: list[str], refused: dict[str, int], *, dry_run: bool) -> Bulk:
    return Bulk(
        dry_run=dry_run,
        matched=min(len(found), _MOST_AT_ONCE),
        done=len(done),
        refused=refused,
        left=len(found) > _MOST_AT_ONCE,
        ids=done,
    )


HANDLERS: list[Any] = [dead_list, dead_retry, dead_discard]

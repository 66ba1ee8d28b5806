"""``redeliver`` and ``campaigns``: a message sent again at once, many by a lasting order."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Any

import typer

from app.cli import words
from app.cli.client import Api, segment
from app.cli.finding import file_of
from app.cli.meter import meter
from app.cli.operate import AllOption, ErrorOption, IdsArgument, sent_again
from app.cli.orders import Desk, Fates, be_sure, ordering
from app.cli.read import CursorOption, DestinationOption, LimitOption, SourceOption, StateOption
from app.cli.screen import FAILED
from app.cli.stopping import stopped
from app.cli.views import Column, View, listed, reading, state, text, time

if TYPE_CHECKING:  # --help needs none of it
    from rich.console import RenderableType

AnswerOption = Annotated[
    str, typer.Option("--answer", metavar="TEXT", help="In the record of an attempt.")
]
FileOption = Annotated[str, typer.Option("--file", metavar="FILE", help="About this file.")]
SinceOption = Annotated[str, typer.Option("--since", metavar="TIME", help="Ordered since then.")]
UntilOption = Annotated[str, typer.Option("--until", metavar="TIME", help="Ordered before.")]
CanaryOption = Annotated[
    bool,
    typer.Option("--canary/--no-canary", help="1, 10, 100, then the rest, each once all arrived."),
]
RateOption = Annotated[
    float, typer.Option("--rate", min=0.01, max=10_000, help="So many a second at most.")
]
StopAfterOption = Annotated[
    int,
    typer.Option(
        "--stop-after", min=1, max=1_000_000, metavar="N", help="Failures that hold it up."
    ),
]
WaitOption = Annotated[
    bool, typer.Option("--wait/--no-wait", help="Follow it to its end; it goes on without.")
]
_LOOK_AGAIN_S = 0.5
_ENDED = frozenset({"finished", "stopped", "paused", "held up"})
_BAD = frozenset({"held up", "stopped"})


@ordering
def redeliver(
    desk: Desk,
    ids: IdsArgument = None,
    destination: DestinationOption = "",
    source: SourceOption = "",
    state: StateOption = "",
    error: ErrorOption = "",
    file: FileOption = "",
    every: AllOption = False,
    force: Annotated[
        bool, typer.Option("--force", help="Also what a newer version has superseded.")
    ] = False,
    answer: AnswerOption = "",
    since: SinceOption = "",
    until: UntilOption = "",
    canary: CanaryOption = True,
    rate: RateOption = 10.0,
    stop_after: StopAfterOption = 1,
    wait: WaitOption = True,
) -> Fates:
    """Send the same bytes under the same id again: a message by its id, or all that match."""
    if ids and len(ids) == 1:
        return sent_again(desk, ids[0], force=force)
    wanted = {
        "destination": destination,
        "source": source,
        "state": state,
        "error": error,
        "file": file_of(desk.api, file) if file else "",
        "answer": answer,
        "since": since,
        "until": until,
        "ids": ids or [],
    }
    del every  # an empty filter means all, and the order says that it is meant
    order = {
        "filter": {name: value for name, value in wanted.items() if value},
        "rate": rate,
        "canary": canary,
        "stop_after": stop_after,
        "force": force,
        "reason": desk.reason,
    }
    preview = desk.api.post("/campaigns", {**order, "dry_run": True})
    if desk.is_dry or not preview["would"]:
        return Fates((), document=preview, notes=list(_preview(preview)), summary=_would(preview))
    be_sure(desk, preview["would"])
    return _followed(desk.api, desk.api.post("/campaigns", order), is_awaited=wait)


@reading
def campaigns(
    api: Api,
    campaign: Annotated[str, typer.Argument(metavar="[ID]", show_default=False)] = "",
    limit: LimitOption = 20,
    cursor: CursorOption = "",
) -> View:
    """Show orders about many messages and how far they are; with an id also what failed, and why.

    Exit status 1 if the one that is named was held up by failures.
    """
    if not campaign:
        found = api.page("/campaigns", limit=limit, cursor=cursor)
        return listed(found, _CAMPAIGNS, "No messages were ever sent again by an order about many.")
    document = api.get(f"/campaigns/{segment(campaign)}")

    def shown(_: words.Moment) -> Iterator[RenderableType]:
        yield from _told(document)

    return View(document, shown, FAILED if document["state"] == "held up" else 0)


def _followed(api: Api, document: dict[str, Any], *, is_awaited: bool) -> Fates:
    """The campaign as it is once it has ended or is held up; Ctrl-C leaves it to itself."""
    from app.clock import SystemClock

    path, clock, ended = f"/campaigns/{segment(document['id'])}", SystemClock(), threading.Event()
    with stopped(ended), meter("sent again") as told:
        while is_awaited and document["state"] not in _ENDED and not _is_idle(document):
            told(document["arrived"] + document["refused"] + document["left"], document["total"])
            if clock.wait(ended, _LOOK_AGAIN_S):
                break
            document = api.get(path)
    is_bad = document["state"] in _BAD or bool(document["failed"])
    notes = list(_told(document))
    return Fates((), document=document, notes=notes[:-1], summary=notes[-1], is_refused=is_bad)


def _is_idle(document: dict[str, Any]) -> bool:
    """Whether nobody works who could move it."""
    return any(what.startswith("a worker") for what in document["waits_for"])


def _told(document: dict[str, Any]) -> Iterator[str]:
    """A campaign in words: where it stands, what is in its way, what to do."""
    campaign = document["id"]
    yield f"{campaign}  {document['state']}: {document['reason']}"
    for failing in document["failures"]:
        yield f"failed  {failing['message']}  {failing['state']}: {failing['error']}"
    for why, count in document["refusals"].items():
        yield f"{count} refused: {why}"
    for what in document["waits_for"]:
        yield f"It waits for {what}."
    if document["state"] == "held up":
        yield f"Held up: {document['why']}."
        yield f"Mend the cause, then: laufzettel resume campaign:{campaign} --reason …"
        yield f"Or give up what is left: laufzettel cancel {campaign} --reason …"
    elif document["state"] in {"gathering", "running"}:
        yield f"It goes on by itself; see: laufzettel campaigns {campaign}"
    yield _counts(document)


def _counts(document: dict[str, Any]) -> str:
    names = ("arrived", "failed", "refused", "left", "under_way", "open")
    counted = [f"{document[name]} {name.replace('_', ' ')}" for name in names if document[name]]
    return f"{document['total']} in all" + "".join(f", {each}" for each in counted)


def _preview(preview: dict[str, Any]) -> Iterator[str]:
    for row in preview["counts"]:
        yield f"{row['count']} {words.state(row['state'])} to {row['destination']}"
    for why, count in preview["refused"].items():
        yield f"{count} of the first {preview['tried']} would be refused: {why}"


def _would(preview: dict[str, Any]) -> str:
    if not preview["matched"]:
        return "Nothing matches."
    return f"{preview['would']} of {preview['matched']} would be sent again"


_CAMPAIGNS = (
    text("id", "id", is_whole=True),
    state(),
    time("ordered", "made_at"),
    text("by", "operator"),
    text("why", "reason"),
    Column("messages", lambda row, _: _counts(row)),
)

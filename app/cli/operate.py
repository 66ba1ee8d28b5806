"""Orders about work: ``retry``, ``redeliver``, ``resolve``, ``discard``, ``cancel``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal

import typer

from app.cli import words
from app.cli.client import NOT_FOUND, Api, Call, document_of, segment
from app.cli.orders import Desk, Fate, Fates, Item, Wish, be_sure, carry_out, ordering
from app.cli.read import DestinationOption, SourceOption
from app.cli.screen import FAILED, WRONG, refuse

MOST_AT_ONCE = 10_000
IdsArgument = Annotated[list[str] | None, typer.Argument(metavar="[ID]...", show_default=False)]
FilesArgument = Annotated[list[str] | None, typer.Argument(metavar="[FILE]...", show_default=False)]
AllOption = Annotated[bool, typer.Option("--all", help="All that match, without an id.")]
ErrorOption = Annotated[str, typer.Option("--error", metavar="TEXT", help="Its cause, in full.")]
NameOption = Annotated[
    str, typer.Option("--name", metavar="NAME", help="Of a step or a destination.")
]


@dataclass(frozen=True, slots=True)
class Kind:
    """How a kind of order about one thing is given, and which states it is for."""

    verb: str
    does: frozenset[str]
    did: frozenset[str]


_RETRY_JOB = Kind("retry", frozenset({"dead", "waiting"}), frozenset({"ready", "running"}))
_RETRY_MESSAGE = Kind(
    "redeliver",
    frozenset({"dead", "waiting", "held", "unclear"}),
    frozenset({"pending", "sending"}),
)
_REDELIVER = Kind(
    "redeliver",
    frozenset({"dead", "waiting", "held", "unclear", "delivered", "skipped", "discarded"}),
    frozenset({"pending", "sending"}),
)
_CANCEL = Kind("cancel", frozenset({"ready", "waiting", "running"}), frozenset({"cancelled"}))
_DISCARD = Kind("discard", frozenset({"dead", "held", "unclear"}), frozenset({"discarded"}))
_ARRIVED = Kind("resolve", frozenset({"unclear", "held", "waiting"}), frozenset({"delivered"}))
_RESOLVE = {
    "resend": Kind("resolve", _REDELIVER.does, _REDELIVER.did),
    "discard": Kind("resolve", _DISCARD.does, _DISCARD.did),
    "delivered": _ARRIVED,
}


@ordering
def retry(
    desk: Desk,
    ids: IdsArgument = None,
    source: SourceOption = "",
    name: NameOption = "",
    error: ErrorOption = "",
    every: AllOption = False,
) -> Fates:
    """Try dead work again: jobs and messages by id, or all dead letters that match."""
    if ids:
        return carry_out(desk, [_retried(desk, told) for told in ids])
    return _dead_letters(desk, "retry", _filter(every, source=source, name=name, error=error))


@ordering
def discard(
    desk: Desk,
    ids: IdsArgument = None,
    source: SourceOption = "",
    name: NameOption = "",
    error: ErrorOption = "",
    every: AllOption = False,
) -> Fates:
    """Give dead work up for good: jobs and messages by id, or all dead letters that match."""
    if ids:
        return carry_out(desk, [_discarded(desk, told) for told in ids])
    return _dead_letters(desk, "discard", _filter(every, source=source, name=name, error=error))


@ordering
def resolve(
    desk: Desk,
    ids: IdsArgument = None,
    outcome: Annotated[
        Literal["delivered", "resend", "discard", "accept-as-new", "dismiss"] | None,
        typer.Option("--outcome", help="Of a message; the last two of a conflict (dlv_…)."),
    ] = None,
    destination: DestinationOption = "",
    every: AllOption = False,
    force: Annotated[
        bool, typer.Option("--force", help="Resend what a newer version has superseded.")
    ] = False,
) -> Fates:
    """Settle what nobody but you can: unclear and held messages, conflicts in quarantine."""
    if outcome is None:
        refuse("nothing says how it ends", "say it with --outcome, see: laufzettel resolve --help")
    if outcome in {"accept-as-new", "dismiss"}:
        return carry_out(desk, [_settled(desk, told, outcome) for told in _some(ids)])
    wanted = _filter(every, destination=destination)
    # An empty filter means all of these states, never all messages.
    unclear = None if wanted is None else {**wanted, "state": "unclear"}
    rows = _messages(desk.api, ids, unclear)
    if not ids and wanted is not None:
        rows += _messages(desk.api, None, {**wanted, "state": "held"})
    body = {"reason": desk.reason, "outcome": outcome, "force": force}
    return carry_out(desk, [_wish("messages", row, _RESOLVE[outcome], body) for row in rows])


@ordering
def cancel(desk: Desk, ids: IdsArgument = None) -> Fates:
    """Stop jobs that are queued, waiting or running, and campaigns (cmp_…) for good."""
    return carry_out(desk, [_cancelled(desk, told) for told in _some(ids)])


def sent_again(desk: Desk, told: str, *, force: bool) -> Fates:
    """The same bytes of one message again."""
    body = {"reason": desk.reason, "force": force}
    wish = _wish("messages", _one(desk.api, "messages", told), _REDELIVER, body)
    return carry_out(desk, [wish])


def _cancelled(desk: Desk, told: str) -> Wish:
    body = {"reason": desk.reason}
    if not told.startswith("cmp_"):
        return _wish("jobs", _one(desk.api, "jobs", told), _CANCEL, body)
    row = _one(desk.api, "campaigns", told)
    is_over = row["state"] in {"finished", "stopped"}
    fate: Fate = "done already" if is_over else "would be done"
    item = Item(told, f"{row['open']} messages that were not sent again yet", fate)
    return Wish(item, Call("POST", f"/campaigns/{segment(told)}/stop", body=body))


def _retried(desk: Desk, told: str) -> Wish:
    is_message = told.startswith("msg_")
    path = "messages" if is_message else "jobs"
    row = _one(desk.api, path, told)
    return _wish(path, row, _RETRY_MESSAGE if is_message else _RETRY_JOB, {"reason": desk.reason})


def _discarded(desk: Desk, told: str) -> Wish:
    is_message = told.startswith("msg_")
    row = _one(desk.api, "messages" if is_message else "jobs", told)
    kind = _DISCARD if is_message else Kind("discard", frozenset({"dead"}), _DISCARD.did)
    wish = _wish("jobs", row, kind, {})
    body = {"reason": desk.reason, "filter": {"ids": [told]}}
    call = Call("POST", "/dead-letters/discard", body=body)
    if is_message:
        body = {"reason": desk.reason, "outcome": "discard"}
        call = Call("POST", f"/messages/{segment(told)}/resolve", body=body)
    return Wish(wish.item, call)


def _settled(desk: Desk, told: str, outcome: str) -> Wish:
    """The way out of a conflict: the other bytes become an event of their own, or nothing."""
    path = f"/deliveries/{segment(told)}"
    row = _one(desk.api, "deliveries", told)
    fate: Fate = "done already" if row["settled"] else "would be done"
    if row["verdict"] != "conflict":
        fate = "refused"
    why = row["settled"] or words.state(row["verdict"])
    item = Item(told, f"event {row['event_id']}", fate, why)
    return Wish(item, Call("POST", f"{path}/{outcome}", body={"reason": desk.reason}))


def _wish(path: str, row: Mapping[str, Any], kind: Kind, body: Mapping[str, Any]) -> Wish:
    state = str(row["state"])
    fate: Fate = "would be done"
    if state in kind.did:
        fate = "done already"
    elif state not in kind.does:
        fate = "refused"
    what = row.get("name") or f"{row.get('type', '')} to {row.get('destination', '')}"
    call = Call("POST", f"/{path}/{segment(str(row['id']))}/{kind.verb}", body=dict(body))
    return Wish(Item(str(row["id"]), str(what), fate, f"it is {words.state(state)}"), call)


def _messages(
    api: Api, ids: list[str] | None, wanted: dict[str, str] | None
) -> list[Mapping[str, Any]]:
    if ids:
        return [_one(api, "messages", told) for told in ids]
    if wanted is None:
        refuse("no message is named", "name some by id, or a filter, or --all", status=WRONG)
    rows: list[Mapping[str, Any]] = api.page("/messages", limit=MOST_AT_ONCE, **wanted)["items"]
    return rows


def _one(api: Api, path: str, told: str) -> Any:
    """The job, message or delivery of this id; ends the command in words where there is none."""
    reply = api.ask(Call("GET", f"/{path}/{segment(told)}"))
    if reply.status == NOT_FOUND:
        one = path.removesuffix("s").replace("deliverie", "delivery")
        mend = f"name it by its id, see: laufzettel {path}"
        refuse(f"no {one} has the id {words.clean(told)}", mend, status=FAILED)
    return document_of(reply)


def _some(ids: list[str] | None) -> list[str]:
    if not ids:
        refuse("nothing is named", "name it by its id")
    return ids


def _filter(every: bool, **wanted: str) -> dict[str, str] | None:
    """The filter that was told; ``None`` for none at all, which must not mean everything."""
    told = {key: value for key, value in wanted.items() if value}
    return told if told or every else None


def _dead_letters(desk: Desk, verb: Literal["retry", "discard"], wanted: Any) -> Fates:
    """An order about dead letters that match; the API looks at each, and counts."""
    if wanted is None:
        refuse("no dead letter is named", "name some by id, or a filter, or --all", status=WRONG)
    path, order = f"/dead-letters/{verb}", {"reason": desk.reason, "filter": wanted}
    preview = desk.api.post(path, {**order, "dry_run": True})
    if desk.is_dry or not preview["done"]:
        return _counted(preview, "would be done")
    be_sure(desk, preview["done"])
    return _counted(desk.api.post(path, {**order, "dry_run": False}), "done")


def _counted(bulk: dict[str, Any], fate: Fate) -> Fates:
    items = [Item(told, "", fate) for told in bulk["ids"]]
    notes = [f"{count} refused: {why}" for why, count in bulk["refused"].items()]
    if bulk["left"]:
        notes.append("There are more than fit into one order: give it again.")
    is_refused = fate == "done" and bool(bulk["refused"])
    return Fates(items, document=bulk, notes=notes, is_refused=is_refused)

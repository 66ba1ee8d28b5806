"""``show FILE``: the slip of one file, stamped at every station it came by."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Annotated, Any

import typer

from app.cli import ordered, words
from app.cli.client import NOT_FOUND, Api, Call, document_of, segment
from app.cli.finding import file_of
from app.cli.held import Hindrances, hindrance, hindrances
from app.cli.read import place, progress
from app.cli.screen import FAILED, refuse
from app.cli.views import Column, View, reading, table, text

if TYPE_CHECKING:  # --help needs none of it
    from rich.console import RenderableType

_MOST_FACTS = 50
_LONGEST_ANSWER = 200
_FOLLOWED = frozenset({"again", "lost"})
_ENDED_WELL = frozenset({"done", "delivered"})


@dataclass(frozen=True, slots=True)
class Stamp:
    """One station: when, where, what happened there; ``state`` colours it."""

    at: str | None
    where: str
    what: str
    state: str = ""
    again: str | None = None  # when a try that failed was, or is to be, followed by the next


@reading
def show(
    api: Api,
    file: Annotated[
        str,
        typer.Argument(
            metavar="FILE", help="An id, source/file_id, a name, a message or a receipt."
        ),
    ],
    at: Annotated[str, typer.Option("--at", metavar="POSITION|TIME", help="As it was then.")] = "",
) -> View:
    """Show what became of a file: deliveries, jobs, attempts, artifacts, messages, answers."""
    document = _document(api, file_of(api, file), at)

    def shown(moment: words.Moment) -> Iterable[RenderableType]:
        told = [] if at else [*_deliveries(api, document), *_orders(api, document)]
        yield from _head(document, moment)
        yield from _stamped([*told, *_stamps(document)], moment)
        yield from _results(document, moment)
        yield from _mends(document)
        if not at:
            yield from _held(document, hindrances(api, _works(document)), moment)

    return View(document, shown)


def _document(api: Api, file: str, at: str) -> Any:
    reply = api.ask(Call("GET", f"/files/{segment(file)}", {"at": at} if at else {}))
    if at and reply.status == NOT_FOUND:
        mend = f"take a later one, see: laufzettel log --stream {file}"
        refuse(f"nothing was known of the file at {words.clean(at)}", mend, status=FAILED)
    return document_of(reply)


def _head(file: dict[str, Any], moment: words.Moment) -> Iterator[RenderableType]:
    from rich.text import Text

    name = words.clean(file["name"] or "(no name)")
    yield Text(f"{name}  ", style="bold") + Text(words.clean(f"{place(file)}  {file['id']}"))
    line = Text(words.state(file["state"]), style=words.style(file["state"]))
    current = f"current version {file['current']}" if file["current"] else "no current version"
    more = [current, words.counted(len(file["versions"]), "version")]
    more += [f"project {file['project']}"] if file["project"] else []
    more += ["on hold"] if file["held"] else []
    more += ["erased"] if file["erased"] else []
    more += [] if file["is_ordered"] else ["the source gives no order: arrival decided"]
    more += [f"changed {moment.shown(file['changed_at'])}"]
    yield line + Text(words.clean(" · " + " · ".join(more)))


def _stamped(stamps: Iterable[Stamp], moment: words.Moment) -> Iterator[RenderableType]:
    """All stations in the order of time; what has no time yet comes last."""
    rows = sorted(stamps, key=lambda stamp: _when(stamp.at))
    columns = (
        Column("when", lambda row, moment: moment.shown(row["at"]) or "-", is_whole=True),
        Column("where", lambda row, _: row["where"], is_whole=True),
        Column("what", _told, style=lambda row: words.style(row["state"])),
    )
    yield table((asdict(stamp) for stamp in rows), columns, moment)


def _when(told: str | None) -> tuple[bool, float]:
    # As numbers: the texts differ in length, since they end where their fraction does.
    at = words.instant(told)
    return at is None, at.timestamp() if at else 0.0


def _told(row: dict[str, Any], moment: words.Moment) -> str:
    again = words.instant(row["again"])
    if again is None:
        return str(row["what"])
    is_past = again <= moment.now
    return f"{row['what']}; {'tried again at' if is_past else 'next try'} {moment.clock(again)}"


def _deliveries(api: Api, file: dict[str, Any]) -> Iterator[Stamp]:
    """What the source told, each time that it did."""
    events = dict.fromkeys(fact["event"] for fact in file["facts"])
    for event in list(events)[:_MOST_FACTS]:
        receipt = api.ask(Call("GET", f"/receipts/rcp_{segment(event.removeprefix('evt_'))}"))
        event_id = receipt.document.get("event_id") if receipt.is_good else ""
        if not event_id:
            continue
        found = api.page("/deliveries", limit=_MOST_FACTS, source=file["source"], event_id=event_id)
        for row in found["items"]:
            why = f": {row['reason']}" if row["reason"] else ""
            what = f"{words.state(row['verdict'])}, event {event_id}{why}"
            where = f"delivery {row['delivery_id']}".strip()
            yield Stamp(row["received_at"], where, what, row["verdict"])


def _orders(api: Api, file: dict[str, Any]) -> Iterator[Stamp]:
    """What operators ordered about the file, and why."""
    names = {work["id"]: _place(work) for work in _works(file)}
    for order in ordered.orders(api, file["id"]):
        data = order["data"]
        version = f"version {data['version']}" if data.get("version") else "file"
        where = names.get(data.get("job") or data.get("message") or "", version)
        yield Stamp(order["at"], where, ordered.told(order), "running")


def _works(file: dict[str, Any]) -> list[dict[str, Any]]:
    """All jobs and messages of a file."""
    of_versions = [[*version["jobs"], *version["messages"]] for version in file["versions"]]
    return [work for works in (*of_versions, file["messages"]) for work in works]


def _place(work: dict[str, Any]) -> str:
    """A job or message as the slip calls its station."""
    if "destination" in work:
        return f"message {work['destination']}"
    is_named = work["name"] != work["kind"]
    return f"{work['kind']} {work['name']}".strip() if is_named else str(work["name"])


def _held(
    file: dict[str, Any], found: Hindrances, moment: words.Moment
) -> Iterator[RenderableType]:
    """What holds up the open work of the file, once for each part."""
    held = {each.part: each for work in _works(file) if (each := hindrance(work, found))}
    yield from (each.told(moment) for each in held.values())


def _stamps(file: dict[str, Any]) -> Iterator[Stamp]:
    for version in file["versions"]:
        yield from _of_version(version)
    for message in file["messages"]:
        yield from _of_message(message)


def _of_version(version: dict[str, Any]) -> Iterator[Stamp]:
    where = f"version {version['version']}"
    about = [version["name"], words.size(version["size"]), version["media_type"]]
    recipe = [f"recipe {version['recipe']}"] if version["recipe"] else []
    yield Stamp(version["reported_at"], where, ", ".join([p for p in about if p] + recipe))
    for job in version["jobs"]:
        yield from _of_job(job)
    for message in version["messages"]:
        yield from _of_message(message)
    if version["completed_at"]:
        yield Stamp(version["completed_at"], where, "completed", "completed")
    elif version["state"] not in {"received", "downloading", "transforming", "notifying"}:
        why = f" at {version['step']}: {version['error']}" if version["error"] else ""
        yield Stamp(None, where, f"{words.state(version['state'])}{why}", version["state"])


def _of_job(job: dict[str, Any]) -> Iterator[Stamp]:
    name = _place(job)
    yield from _attempts(job, name)
    if job["ended_at"] and not job["attempts"]:
        why = f": {job['error']}" if job["error"] else ""
        yield Stamp(job["ended_at"], name, f"{words.state(job['state'])}{why}", job["state"])
    elif not job["ended_at"]:
        yield _open(job, name, progress(job["progress"]))


def _of_message(message: dict[str, Any]) -> Iterator[Stamp]:
    where = _place(message)
    about = f"{message['type']}, {message['id']}"
    yield Stamp(message["ordered_at"], where, f"made: {about}")
    yield from _attempts(message, where)
    reference = f", their id {message['reference']}" if message["reference"] else ""
    if message["ended_at"]:
        what = f"{words.state(message['state'])}{reference}"
        yield Stamp(message["ended_at"], where, what, message["state"])
    else:
        yield _open(message, where, reference)


def _attempts(work: dict[str, Any], where: str) -> Iterator[Stamp]:
    """Each try; behind one that failed the next, which is due where it has not been yet."""
    tries = sorted(work["attempts"], key=lambda attempt: _when(attempt["at"]))
    following = [attempt["at"] for attempt in tries[1:]] + [work["due_at"]]
    numbers = ordered.numbered(tries)
    for attempt, number, again in zip(tries, numbers, following, strict=False):
        stamp = _attempt(attempt, number, where)
        yield replace(stamp, again=again) if attempt["outcome"] in _FOLLOWED else stamp


def _attempt(attempt: dict[str, Any], number: int, where: str) -> Stamp:
    """One try: its outcome, how long it took, what was answered."""
    joint = "in" if attempt["outcome"] in _ENDED_WELL else "after"
    took = f" {joint} {attempt['duration_ms']} ms" if attempt["duration_ms"] is not None else ""
    status = f", answered {attempt['status']}" if attempt["status"] else ""
    answer = (attempt["response_body"] or "").strip()[:_LONGEST_ANSWER]
    told = f" {answer}" if answer else ""
    # An answer that was a refusal is the error too, in other words.
    why = f": {attempt['error']}" if attempt["error"] and not status else ""
    outcome = words.OUTCOMES.get(attempt["outcome"], attempt["outcome"])
    what = f"try {number}: {outcome}{took}{status}{told}{why}"
    return Stamp(attempt["at"], where, what, attempt["outcome"])


def _open(work: dict[str, Any], where: str, more: str) -> Stamp:
    """Work that is not at its end yet, at the time when it is due."""
    why = f": {work['error']}" if work["error"] else ""
    far = f" {more}" if more else ""
    return Stamp(work["due_at"], where, f"{words.state(work['state'])}{far}{why}", work["state"])


def _results(file: dict[str, Any], moment: words.Moment) -> Iterator[RenderableType]:
    rows = [
        {**artifact, "version": version["version"]}
        for version in file["versions"]
        for artifact in version["artifacts"]
    ]
    columns = (
        text("version", "version"),
        text("artifact", "name"),
        Column("size", lambda row, _: words.size(row["size"]), is_number=True),
        text("type", "media_type"),
        text("note", "note"),
        text("sha256", "sha256", is_whole=True),
        text("id", "id", is_whole=True),
    )
    if rows:
        yield table(rows, columns, moment)
    for version in file["versions"]:
        for name, why in version["missing"].items():
            yield words.clean(f"version {version['version']} has no {name}: {why}")


def _mends(file: dict[str, Any]) -> Iterator[RenderableType]:
    """What can be typed now, where something needs a human."""
    of_versions = [m for version in file["versions"] for m in version["messages"]]
    for job in (job for version in file["versions"] for job in version["jobs"]):
        if job["state"] == "dead":
            yield f"try it again:  laufzettel retry {job['id']} --reason …"
    for message in (*of_versions, *file["messages"]):
        if message["state"] == "dead":
            yield f"send it again: laufzettel retry {message['id']} --reason …"
        if message["state"] in {"unclear", "held"}:
            yield f"settle it:     laufzettel resolve {message['id']} --outcome … --reason …"

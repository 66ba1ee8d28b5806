"""What all orders have in common: a reason, a dry run, a question before many, one line each."""

from __future__ import annotations

import json as js
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from functools import wraps
from typing import Annotated, Any, Concatenate, Literal, ParamSpec

import typer

from app.cli import words
from app.cli.client import Api, Call, Reach, connected
from app.cli.screen import FAILED, JsonOption, refuse
from app.cli.views import dress

P = ParamSpec("P")
Fate = Literal["done", "would be done", "done already", "refused", "left"]

ReasonOption = Annotated[
    str,
    typer.Option("--reason", metavar="TEXT", help="Why: kept on the log. Asked for if absent."),
]
DryRunOption = Annotated[
    bool, typer.Option("--dry-run", help="Say what is done already and what would be done.")
]
YesOption = Annotated[bool, typer.Option("--yes", help="Do not ask before many.")]
_NAMING = (
    *("ids", "files", "every", "source", "name", "error"),
    *("destination", "state", "answer", "since", "until", "file"),
)
_STYLES: dict[Fate, str] = {
    "done": "green",
    "would be done": "cyan",
    "done already": "dim",
    "refused": "bold red",
    "left": "yellow",
}


@dataclass(frozen=True, slots=True)
class Desk:
    """Where an order is given, and how."""

    api: Api
    reason: str
    is_dry: bool
    is_sure: bool


@dataclass(frozen=True, slots=True)
class Item:
    """One thing that an order is about, and what becomes of it."""

    id: str
    what: str
    fate: Fate
    why: str = ""


@dataclass(frozen=True, slots=True)
class Wish:
    """One thing that is wanted, and the call that brings it about."""

    item: Item
    call: Call


@dataclass(frozen=True, slots=True)
class Fates:
    """What became of an order: one row a thing. ``document`` is the API's own, where it has one.

    ``summary`` is the last line; without one the rows are counted.
    """

    items: Sequence[Item]
    document: Any = None
    notes: Sequence[str] = field(default_factory=tuple)
    is_refused: bool = False
    summary: str = ""


def ordering(function: Callable[Concatenate[Desk, P], Fates]) -> Callable[..., None]:
    """A command with the options of all orders."""

    @wraps(function)
    def command(
        *args: Any,
        config: Any,
        url: str,
        operator: str,
        json: bool,
        reason: str,
        dry_run: bool,
        yes: bool,
        **options: Any,
    ) -> None:
        _be_about_something(options)
        why = reason if dry_run else _reason(reason)
        with connected(Reach(config, url, operator, writes=not dry_run)) as api:
            fates = function(Desk(api, why or "dry run", dry_run, yes), *args, **options)
            _show(fates, as_json=json)
        if fates.is_refused or any(item.fate == "refused" for item in fates.items):
            raise typer.Exit(FAILED)

    dress(
        command,
        function,
        reason=(ReasonOption, ""),
        dry_run=(DryRunOption, False),
        yes=(YesOption, False),
        json=(JsonOption, False),
    )
    return command


def carry_out(desk: Desk, wishes: Sequence[Wish]) -> Fates:
    """Do what is wanted, one call a thing; a dry run only says so, many are asked about first."""
    open_ones = [wish for wish in wishes if wish.item.fate == "would be done"]
    if desk.is_dry or not open_ones:
        return Fates([wish.item for wish in wishes])
    be_sure(desk, len(open_ones))
    settled: list[Item] = []
    with progress(len(open_ones)) as advance:
        for wish in wishes:
            settled.append(done(desk.api, wish) if wish in open_ones else wish.item)
            advance()
    return Fates(settled)


def be_sure(desk: Desk, count: int) -> None:
    """Ask before many things are changed; without a terminal they need ``--yes``."""
    if count < 2 or desk.is_sure or desk.is_dry:
        return
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        refuse(f"this is about {count} things", "say --yes, or look first with --dry-run")
    typer.confirm(f"This is about {count} things. Go on?", abort=True, err=True)


@contextmanager
def progress(total: int) -> Iterator[Callable[[], None]]:
    """A bar on a terminal while many things are done."""
    if total < 2 or not sys.stderr.isatty():
        yield lambda: None
        return
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("orders", total=total)
        yield lambda: bar.advance(task)


def done(api: Api, wish: Wish) -> Item:
    """Give the order about one thing; what became of it."""
    reply = api.ask(wish.call)
    item = wish.item
    told = reply.document if isinstance(reply.document, dict) else {}
    if reply.is_good and not told.get("refused"):
        return Item(item.id, item.what, "done")
    why = next(iter(told.get("refused", ())), reply.words)
    fate: Fate = "done already" if told.get("code") == "nothing-to-do" else "refused"
    return Item(item.id, item.what, fate, why)


def _be_about_something(options: dict[str, Any]) -> None:
    """End an order that names nothing before it asks for a reason."""
    if not options.keys() & {"ids", "files"} or any(options.get(key) for key in _NAMING):
        return
    is_many = "every" in options
    mend = "name some by id, or a filter, or --all" if is_many else "name it by its id"
    refuse("nothing is named", mend)


def _reason(told: str) -> str:
    """Why it is done; asked for on a terminal, demanded elsewhere."""
    if told.strip():
        return told.strip()
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        refuse("an order needs a reason", 'say why with --reason "…": it is kept with the order')
    return str(typer.prompt("Reason", err=True)).strip()


def _show(fates: Fates, *, as_json: bool) -> None:
    if as_json:
        document = fates.document or {"items": [asdict(item) for item in fates.items]}
        print(js.dumps(document, ensure_ascii=False, indent=2))
        return
    from rich.text import Text

    from app.cli.views import screen

    console = screen()
    for item in fates.items:
        why = f": {item.why}" if item.why else ""
        line = Text(f"{item.fate}  ", style=_STYLES[item.fate])
        console.print(line + Text(words.clean(f"{item.id}  {item.what}{why}")))
    for note in (*fates.notes, fates.summary or _summary(fates.items)):
        console.print(words.clean(note))


def _summary(items: Iterable[Item]) -> str:
    counts: dict[str, int] = {}
    for item in items:
        counts[item.fate] = counts.get(item.fate, 0) + 1
    return ", ".join(f"{count} {fate}" for fate, count in counts.items()) or "Nothing matches."

"""What a reading command shows: tables for people, the API's JSON for scripts, again and again."""

from __future__ import annotations

import inspect
import json as js
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import wraps
from typing import TYPE_CHECKING, Annotated, Any, Concatenate, ParamSpec

import typer

from app.cli import words
from app.cli.client import Api, Reach, connected
from app.cli.screen import DEFAULT_CONFIG, ConfigOption, JsonOption, UrlOption

if TYPE_CHECKING:  # --help needs none of it
    from rich.console import Console, RenderableType

P = ParamSpec("P")

_WATCH_S = 2.0
_PIPE_COLUMNS = 200
WatchOption = Annotated[bool, typer.Option("--watch", help="Look again every two seconds.")]
OperatorOption = Annotated[
    str, typer.Option("--operator", metavar="NAME", help="Who you are; without it the OS user.")
]


@dataclass(frozen=True, slots=True)
class View:
    """What was found: the document of the API, how people see it, and the exit status."""

    document: Any
    shown: Callable[[words.Moment], Iterable[RenderableType]]
    status: int = 0


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a table: its title, its text in a row, how it is coloured there."""

    title: str
    text: Callable[[dict[str, Any], words.Moment], str]
    style: Callable[[dict[str, Any]], str] | None = None
    is_whole: bool = False  # an id is cut nowhere
    is_number: bool = False


def reading(function: Callable[Concatenate[Api, P], View]) -> Callable[..., None]:
    """A command with the options of all commands that read: how to reach, JSON, watching."""

    @wraps(function)
    def command(
        *args: Any, config: Any, url: str, operator: str, json: bool, watch: bool, **options: Any
    ) -> None:
        with connected(Reach(config, url, operator)) as api:
            if watch:
                _watch(lambda: function(api, *args, **options), as_json=json)
            view = function(api, *args, **options)
            show(view, as_json=json)
        if view.status:
            raise typer.Exit(view.status)

    dress(command, function, json=(JsonOption, False), watch=(WatchOption, False))
    return command


def dress(command: Any, function: Any, **more: tuple[Any, Any]) -> None:
    """Give a wrapper the options of what it wraps, and its own; typer reads both from here."""
    signature = inspect.signature(function, eval_str=True)
    own = list(signature.parameters.values())[1:]
    common: dict[str, tuple[Any, Any]] = {
        "config": (ConfigOption, DEFAULT_CONFIG),
        "url": (UrlOption, ""),
        "operator": (OperatorOption, ""),
        **more,
    }
    added = [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, annotation=kind, default=default)
        for name, (kind, default) in common.items()
    ]
    parameters = sorted([*own, *added], key=lambda parameter: parameter.kind)
    command.__signature__ = inspect.Signature(parameters)
    command.__annotations__ = {p.name: p.annotation for p in parameters}
    del command.__wrapped__


def show(view: View, *, as_json: bool) -> None:
    """Print what was found."""
    if as_json:
        print(js.dumps(view.document, ensure_ascii=False, indent=2))
        return
    console = screen()
    for piece in view.shown(present()):
        console.print(piece)


def _watch(look: Callable[[], View], *, as_json: bool) -> None:
    """Show it again and again until Ctrl-C."""
    import threading

    from app.cli.stopping import stopped
    from app.clock import SystemClock

    ended, clock = threading.Event(), SystemClock()
    console = screen()
    with stopped(ended):
        while not ended.is_set():
            view = look()
            if as_json:
                print(js.dumps(view.document, ensure_ascii=False), flush=True)
            else:
                console.clear()
                console.print(*view.shown(present()), sep="\n")
            clock.wait(ended, _WATCH_S)
    raise typer.Exit(0)


def screen() -> Console:
    """Where people read; a pipe is as wide as ids need."""
    from rich.console import Console

    width = None if sys.stdout.isatty() else _PIPE_COLUMNS
    return Console(width=width, highlight=False, markup=False, emoji=False, soft_wrap=False)


def present() -> words.Moment:
    """The present, in the zone of this machine."""
    from app.clock import SystemClock

    return words.Moment(SystemClock().now())


def listed(document: dict[str, Any], columns: Sequence[Column], nothing: str) -> View:
    """A list as a table; ``nothing`` says in words that it is empty, and where to look."""

    def shown(moment: words.Moment) -> Iterable[RenderableType]:
        if not document["items"]:
            yield nothing
            return
        yield table(document["items"], columns, moment)
        # A log has a place to go on from also behind its last event: that is a number.
        if isinstance(document.get("next"), str):
            yield "There is more: --limit N shows more of it."

    return View(document, shown)


def table(
    rows: Iterable[dict[str, Any]], columns: Sequence[Column], moment: words.Moment
) -> RenderableType:
    """Rows under titles, without lines."""
    from rich import box
    from rich.table import Table
    from rich.text import Text

    made = Table(box=box.SIMPLE_HEAD, pad_edge=False, header_style="bold", show_edge=False)
    for column in columns:
        made.add_column(
            column.title,
            no_wrap=column.is_whole,
            overflow="fold",
            justify="right" if column.is_number else "left",
        )
    for row in rows:
        made.add_row(
            *(
                Text(words.clean(c.text(row, moment)), style=c.style(row) if c.style else "")
                for c in columns
            )
        )
    return made


def text(title: str, key: str, *, is_whole: bool = False) -> Column:
    """A column that shows a field as it is."""
    return Column(title, lambda row, _: words.clean(row.get(key)), is_whole=is_whole)


def time(title: str, key: str) -> Column:
    """A column that shows a time with its age."""
    return Column(title, lambda row, moment: moment.shown(row.get(key)), is_whole=True)


def state(title: str = "state", key: str = "state") -> Column:
    """A column that shows a state in words and colour."""
    return Column(
        title, lambda row, _: words.state(row.get(key)), style=lambda row: words.style(row.get(key))
    )

"""``reprocess``: a new run under a changed recipe; first dry, with all that it would make."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Annotated, Any

import typer

from app.cli import words
from app.cli.client import Call, segment
from app.cli.finding import file_of
from app.cli.orders import Desk, Fate, Fates, Item, Wish, carry_out, ordering, progress
from app.cli.read import SourceOption, StateOption, place
from app.cli.screen import refuse

MOST_FILES = 10_000
_SETTLED = "nothing-to-do"


@ordering
def reprocess(
    desk: Desk,
    files: Annotated[
        list[str] | None, typer.Argument(metavar="[FILE]...", show_default=False)
    ] = None,
    recipe: Annotated[
        str, typer.Option("--recipe", metavar="NAME", help="Else the one that matches now.")
    ] = "",
    version: Annotated[
        str, typer.Option("--version", metavar="VERSION", help="Else the newest.")
    ] = "",
    source: SourceOption = "",
    state: StateOption = "",
    every: Annotated[bool, typer.Option("--all", help="All files, without a filter.")] = False,
) -> Fates:
    """Run files again under a changed recipe: some by name, or all that match.

    Work that is done already is found and not done again: only what the recipe changed is made, and
    receivers are told of a result only under a new message.
    """
    rows = _rows(desk, files or [], source=source, state=state, every=every)
    body = {"version": version, "recipe": recipe, "reason": desk.reason}
    wishes: list[Wish] = []
    previews: list[Mapping[str, Any]] = []
    with progress(len(rows)) as advance:
        for row in rows:
            path = f"/files/{segment(row['id'])}/reprocess"
            preview = desk.api.post(path, {**body, "dry_run": True})
            previews.append(preview)
            item = Item(row["id"], _about(row, preview), _fate(preview), preview["reason"])
            wishes.append(Wish(item, Call("POST", path, body=body)))
            advance()
    fates = carry_out(desk, wishes)
    return Fates(fates.items, document=_document(fates, previews))


def _rows(
    desk: Desk, files: list[str], *, source: str, state: str, every: bool
) -> list[Mapping[str, Any]]:
    if files:
        ids = [file_of(desk.api, told) for told in files]
        return [desk.api.get(f"/files/{segment(told)}") for told in dict.fromkeys(ids)]
    if not (source or state or every):
        refuse("no file is named", "name some, or a filter, or --all")
    rows: list[Mapping[str, Any]] = desk.api.page(
        "/files", limit=MOST_FILES, source=source, state=state
    )["items"]
    return rows


def _fate(preview: Mapping[str, Any]) -> Fate:
    if preview["would"]:
        return "would be done"
    return "done already" if preview["code"] == _SETTLED else "refused"


def _about(row: Mapping[str, Any], preview: Mapping[str, Any]) -> str:
    """The file, and what a new run would make."""
    made = [
        words.counted(len(preview[kind]), kind.removesuffix("s"))
        for kind in ("jobs", "messages")
        if preview[kind]
    ]
    return f"{row['name'] or place(dict(row))}{': ' if made else ''}{', '.join(made)}"


def _document(fates: Fates, previews: list[Mapping[str, Any]]) -> dict[str, Any]:
    return {
        "items": [
            {**asdict(item), "jobs": preview["jobs"], "messages": preview["messages"]}
            for item, preview in zip(fates.items, previews, strict=True)
        ]
    }

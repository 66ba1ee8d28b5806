"""``FILE`` as people name it: an id, ``source/file_id``, a name, a message or a receipt."""

from __future__ import annotations

import sys
from typing import Any, NoReturn

import typer

from app.cli import words
from app.cli.client import Api, Call, segment
from app.cli.screen import FAILED, WRONG, refuse

MOST_SHOWN = 20


def file_of(api: Api, told: str) -> str:
    """The id of the one file that is meant; ends the command where there is none, or several."""
    if told.startswith("fil_") and api.ask(Call("GET", f"/files/{segment(told)}")).is_good:
        return told
    found: list[dict[str, Any]] = api.page("/files", limit=MOST_SHOWN + 1, q=told)["items"]
    rows = [row for row in found if _is_named(row, told)] or found
    if not rows:
        mend = "look for it with: laufzettel files TEXT"
        refuse(f"no file is called {words.clean(told)}", mend, status=FAILED)
    if len(rows) > 1:
        _ambiguous(told, rows)
    return str(rows[0]["id"])


def _is_named(row: dict[str, Any], told: str) -> bool:
    """Whether this is the whole of what names the file, not a part of its name."""
    place = f"{row.get('source')}/{row.get('file_id')}"
    return told in {row["id"], row.get("file_id"), place, row.get("name")}


def _ambiguous(told: str, rows: list[dict[str, Any]]) -> NoReturn:
    what = f"several files are called {words.clean(told)}"
    print(f"error: {what} → name one by its id", file=sys.stderr)
    for row in rows[:MOST_SHOWN]:
        name = words.clean(f"{row.get('name') or ''}  {row.get('source')}/{row.get('file_id')}")
        print(f"  {row['id']}  {name}  {words.state(row.get('state'))}", file=sys.stderr)
    if len(rows) > MOST_SHOWN:
        print("  and more", file=sys.stderr)
    raise typer.Exit(WRONG)

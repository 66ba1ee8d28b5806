"""``erase``, ``hold``, ``release``: what is removed for good, and what may not be."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from app.cli import words
from app.cli.client import Call, segment
from app.cli.finding import file_of
from app.cli.orders import Desk, Fate, Fates, Item, Wish, carry_out, ordering
from app.cli.read import SourceOption
from app.cli.screen import WRONG, refuse

MOST_AT_ONCE = 10_000
FilesArgument = Annotated[list[str] | None, typer.Argument(metavar="[FILE]...", show_default=False)]


@ordering
def erase(
    desk: Desk,
    files: FilesArgument = None,
    match: Annotated[
        str, typer.Option("--match", metavar="TEXT", help="All files with this in their name.")
    ] = "",
    source: SourceOption = "",
    certificate: Annotated[
        Path | None, typer.Option("--certificate", metavar="PATH", help="Write what was done.")
    ] = None,
) -> Fates:
    """Remove a file's content, names and message bodies for good; whoever had it is told.

    Receipts, order and hash chain stay. A file on hold is refused.
    """
    if bool(files) == bool(match):
        refuse("erase needs files, or --match", "name what is to go", status=WRONG)
    ids = [file_of(desk.api, told) for told in files or ()]
    ids = ids or _matching(desk, match, source)
    fates = carry_out(desk, [_wish(desk, found, "erase") for found in ids])
    if certificate is not None and not desk.is_dry:
        _certify(desk, fates, certificate)
    return fates


@ordering
def hold(desk: Desk, files: FilesArgument = None) -> Fates:
    """Protect files from erasure and from retention, until they are released."""
    return _each(desk, files, "hold")


@ordering
def release(desk: Desk, files: FilesArgument = None) -> Fates:
    """Lift the hold of files."""
    return _each(desk, files, "release")


def _each(desk: Desk, files: list[str] | None, verb: str) -> Fates:
    if not files:
        refuse(f"{verb} needs a file", f"laufzettel {verb} FILE", status=WRONG)
    return carry_out(desk, [_wish(desk, file_of(desk.api, told), verb) for told in files])


def _matching(desk: Desk, match: str, source: str) -> list[str]:
    found = desk.api.page("/files", limit=MOST_AT_ONCE + 1, q=match, source=source)["items"]
    if len(found) > MOST_AT_ONCE:
        refuse(f"more than {MOST_AT_ONCE} files match", "narrow it by --source", status=WRONG)
    return [str(row["id"]) for row in found]


def _wish(desk: Desk, file: str, verb: str) -> Wish:
    row = desk.api.get(f"/files/{segment(file)}")
    fate, why = _fate(row, verb)
    name = words.clean(row.get("name") or f"{row.get('source')}/{row.get('file_id') or '?'}")
    call = Call("POST", f"/files/{segment(file)}/{verb}", body={"reason": desk.reason})
    return Wish(Item(file, f"{verb} {name}", fate, why), call)


def _fate(row: dict[str, Any], verb: str) -> tuple[Fate, str]:
    if verb == "erase" and row["held"]:
        return "refused", "the file is on hold; release it first"
    is_done = row["erased"] if verb == "erase" else row["held"] == (verb == "hold")
    return ("done already" if is_done else "would be done"), ""


def _certify(desk: Desk, fates: Fates, place: Path) -> None:
    """Write the signed certificates of what is erased: one document, a list of them."""
    done = [item.id for item in fates.items if item.fate in {"done", "done already"}]
    found = [desk.api.get(f"/files/{segment(file)}/certificate") for file in done]
    place.write_text(json.dumps(found, ensure_ascii=False, indent=2) + "\n", encoding="utf-8")

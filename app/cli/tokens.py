"""``tokens create``, ``tokens list``, ``tokens revoke``: who has access."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from app.cli import words
from app.cli.client import Api, Call, segment
from app.cli.orders import Desk, Fates, Item, Wish, carry_out, ordering
from app.cli.views import Column, View, listed, reading, text, time

app = typer.Typer(no_args_is_help=True, rich_markup_mode=None, help="Give and take access.")


def _standing(row: dict[str, Any], moment: words.Moment) -> str:
    """Whether a token still opens anything."""
    ends = words.instant(row.get("expires_at"))
    if row.get("revoked_at"):
        return f"revoked {moment.shown(row['revoked_at'])}"
    if ends is not None and ends <= moment.now:
        return "ran out"
    return f"ends {moment.age(ends)}" if ends else "valid"


COLUMNS = (
    text("id", "id", is_whole=True),
    text("name", "name"),
    text("role", "role"),
    Column("limited to", lambda row, _: ", ".join(row.get("scope") or ()) or "nothing"),
    Column("state", _standing),
    time("made", "created_at"),
    time("used", "used_at"),
)


@app.command("list")
@reading
def listing(api: Api) -> View:
    """List all tokens: what they open and when they were last used, never what they are."""
    found = api.get("/tokens")
    document = found if isinstance(found, dict) else {"items": found}
    return listed(document, COLUMNS, "There is no token.")


@app.command()
@ordering
def create(
    desk: Desk,
    name: Annotated[str, typer.Argument(help="Whose it is; it is on the log as the operator.")],
    role: Annotated[
        str, typer.Option("--role", metavar="ROLE", help="viewer, operator, admin or receiver.")
    ] = "viewer",
    scope: Annotated[
        list[str] | None,
        typer.Option("--only", metavar="source:NAME", help="Limits it; or destination:NAME."),
    ] = None,
    days: Annotated[int, typer.Option("--days", min=1, max=3650, help="How long it lives.")] = 365,
) -> Fates:
    """Make a token and show it, once: it is kept nowhere."""
    body = {"name": name, "role": role, "scope": scope or [], "days": days, "reason": desk.reason}
    what = f"{role} {name}"
    if desk.is_dry:
        return Fates([Item("token", what, "would be done")])
    made = desk.api.post("/tokens", body)
    ends = f" It ends {made['expires_at'][:10]}." if made.get("expires_at") else ""
    notes = (made["token"], f"This is the only time that it is shown.{ends}")
    return Fates([Item(made["id"], what, "done")], document=made, notes=notes)


@app.command()
@ordering
def revoke(
    desk: Desk, ids: Annotated[list[str], typer.Argument(metavar="ID...", show_default=False)]
) -> Fates:
    """Shut tokens out at once."""
    found = desk.api.get("/tokens")
    known = {row["id"]: row for row in (found if isinstance(found, list) else found["items"])}
    return carry_out(desk, [_revoked(desk, told, known.get(told)) for told in ids])


def _revoked(desk: Desk, told: str, row: dict[str, Any] | None) -> Wish:
    path = f"/tokens/{segment(told)}"
    call = Call("DELETE", path, query={"reason": desk.reason})
    if row is None:
        return Wish(Item(told, "token", "refused", "there is no such token"), call)
    what = f"{row['role']} {row['name']}"
    return Wish(Item(told, what, "done already" if row["revoked_at"] else "would be done"), call)

"""``secrets``: which secret last proved a delivery, and which may be given up."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from app.cli.client import Api
from app.cli.views import Column, View, listed, reading, text, time

_WORDS = {
    "safe": "safe to give up",
    "in-use": "in use",
    "only": "the only one",
    "unused": "not used yet",
    "gone": "given up",
    "receiver": "ask its receiver",
}
_STYLES = {"safe": "green", "in-use": "", "only": "", "unused": "yellow", "gone": "dim"}


def _shown(row: dict[str, Any]) -> str:
    return _WORDS.get(row["retire"], str(row["retire"]))


_COLUMNS = (
    text("of", "part", is_whole=True),
    text("key", "key_id", is_whole=True),
    text("from", "reference"),
    time("last used", "last_used_at"),
    Column(
        "to give up",
        lambda row, _: _shown(row),
        style=lambda row: _STYLES.get(row["retire"], ""),
    ),
    text("why", "why"),
)


@reading
def secrets(
    api: Api,
    part: Annotated[
        str, typer.Argument(metavar="[PART]", help="source:NAME or destination:NAME.")
    ] = "",
    quiet_days: Annotated[
        int, typer.Option("--quiet-days", min=0, max=3650, help="Unused for so long is quiet.")
    ] = 7,
) -> View:
    """List secrets by their ids: when each last proved a delivery, which may be given up."""
    found = api.get("/secrets", quiet_days=quiet_days)
    rows = [row for row in found["items"] if part in {"", row["part"]}]
    return listed({**found, "items": rows}, _COLUMNS, "There is no such secret.")

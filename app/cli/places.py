"""``pause``, ``resume`` and ``ping``: orders about parts of the installation."""

from __future__ import annotations

from typing import Annotated, Literal

import typer

from app.cli import words
from app.cli.client import Api, Call, segment
from app.cli.held import standing
from app.cli.orders import Desk, Fate, Fates, Item, Wish, carry_out, ordering
from app.cli.screen import FAILED, refuse
from app.cli.views import View, reading

_PARTS = {
    "destination": "destinations",
    "source": "sources",
    "recipe": "recipes",
    "step": "steps",
    "campaign": "campaigns",
}
WhatArgument = Annotated[
    str,
    typer.Argument(
        metavar="WHAT",
        help="destination:NAME, source:NAME, recipe:NAME, step:NAME, campaign:ID, or all.",
    ),
]


@ordering
def pause(desk: Desk, what: WhatArgument) -> Fates:
    """Begin no more work of a part; deliveries are accepted all the same, and wait."""
    return _order(desk, what, "pause")


@ordering
def resume(desk: Desk, what: WhatArgument) -> Fates:
    """Let the work of a part begin again; one that its breaker cut off is tried at once."""
    return _order(desk, what, "resume")


@reading
def ping(
    api: Api, destination: Annotated[str, typer.Argument(metavar="DEST", help="Its name.")]
) -> View:
    """Send a signed test message to a destination and show its answer. Exit status 1 if it failed.

    The message is of type `laufzettel.ping`: it is about no file, and nothing of it is kept.
    """
    document = api.post(f"/destinations/{segment(destination)}/test", {"reason": "ping"})

    def shown(_: words.Moment) -> list[str]:
        took = f" in {document['duration_ms']} ms" if document.get("duration_ms") else ""
        status = f", answered {document['status']}" if document.get("status") else ""
        why = f": {document['error']}" if document.get("error") else ""
        return [words.clean(f"{destination}: {document['outcome']}{took}{status}{why}")]

    return View(document, shown, 0 if document["outcome"] == "delivered" else FAILED)


def _order(desk: Desk, what: str, verb: Literal["pause", "resume"]) -> Fates:
    path, name = _path_of(what)
    found = standing(desk.api).get(what)
    is_done = found is None if verb == "resume" else found is not None and found.word == "paused"
    fate: Fate = "done already" if is_done else "would be done"
    call = Call("POST", f"{path}/{verb}", body={"reason": desk.reason})
    return carry_out(desk, [Wish(Item(what, f"{verb} {name}", fate), call)])


def _path_of(what: str) -> tuple[str, str]:
    """The path of a part in the API, and what to call it."""
    if what == "all":
        return "", "all work"
    kind, colon, name = what.partition(":")
    if kind not in _PARTS or not colon or not name:
        kinds = ", ".join(f"{kind}:NAME" for kind in _PARTS)
        refuse(f"{words.clean(what)} is no part", f"write one of: {kinds}, all")
    return f"/{_PARTS[kind]}/{segment(name)}", f"{kind} {name}"

"""Events of the installation: what each of them changes, and where it would change nothing."""

from __future__ import annotations

import sqlalchemy as sa

from app.ledger.book import Book
from app.ledger.requests import Answer, Control, Recorded
from app.store import breakers, campaigns, projections
from app.store import tables as t
from domain.commands import Refusal
from domain.installation import CampaignEnded, ConflictResolved, Paused, RecipeDefined, Resumed
from domain.recipes import from_canonical


def take_control(connection: sa.Connection, book: Book, control: Control, now_ms: int) -> Answer:
    """Change what the event changes; it is to be recorded if the answer names it."""
    event = control.event
    controls = t.controls
    match event:
        case Paused(what=what) if _is_paused(connection, what):
            return Refusal("nothing-to-do", f"{what} is paused already")
        case Resumed(what=what) if not (
            # A part that is cut off is tried at once, whether or not it was paused too.
            breakers.hasten(connection, what, now_ms) or _is_paused(connection, what)
        ):
            return Refusal("nothing-to-do", f"{what} is neither paused nor cut off")
        case CampaignEnded(campaign=campaign) if campaigns.is_over(connection, campaign):
            return Refusal("nothing-to-do", "the campaign is over")
        case RecipeDefined(digest=digest) if _is_pinned(connection, digest):
            book.learn(connection, [digest])
            return Recorded()
        case Paused():
            row = projections.control_row(event, control.cause)
            projections.upsert(connection, controls, [row])
        case Resumed(what=what):
            connection.execute(controls.delete().where(controls.c.what == what))
        case RecipeDefined(digest=digest, form=form):
            projections.upsert(connection, t.recipes, [projections.recipe_row(event)])
            book.recipes[digest] = from_canonical(form.encode())
        case ConflictResolved(delivery=delivery):
            rows = t.deliveries.c.id == int(delivery)
            settled = t.deliveries.update().where(rows, t.deliveries.c.settled == "")
            if not connection.execute(settled.values(settled=event.outcome)).rowcount:
                return Refusal("conflict", "the conflict is settled already, or is none")
        case _:
            pass
    return Recorded((event,))


def _is_pinned(connection: sa.Connection, digest: str) -> bool:
    query = sa.select(t.recipes.c.digest).where(t.recipes.c.digest == digest)
    return connection.execute(query).first() is not None


def _is_paused(connection: sa.Connection, what: str) -> bool:
    query = sa.select(t.controls.c.what).where(t.controls.c.what == what)
    return connection.execute(query).first() is not None

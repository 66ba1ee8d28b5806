"""Destinations, sources, recipes and steps: how each stands, and its switch."""

from __future__ import annotations

from typing import Any

from litestar import get

from app.web.api import parts
from app.web.console.asking import ask
from app.web.console.pages import Page, Visiting, page
from app.web.console.session import signed_in


@get("/destinations", guards=[signed_in("viewer")], sync_to_thread=True)
def destination_page(visit: Visiting) -> Page:
    """How the destinations stand."""
    return page(visit, "destinations.html", destinations=parts.destinations_out(visit.office))


@get("/sources", guards=[signed_in("viewer")], sync_to_thread=True)
def source_page(visit: Visiting) -> Page:
    """How the sources stand; the recipes and steps that their files go through."""
    office, who = visit.office, visit.who
    return page(
        visit,
        "sources.html",
        sources=parts.sources_out(office, who),
        recipes=ask(parts.recipe_list, office, who).items,
        steps=ask(parts.step_list, office).items,
        hooks=office.config.installation.public_url,
    )


HANDLERS: list[Any] = [destination_page, source_page]

"""The API: what operators and receivers see and order, as JSON under ``/api/v1``."""

from __future__ import annotations

from litestar import Router

from app.web.api import (
    alerts,
    arrivals,
    artifacts,
    campaigns,
    dead,
    erasing,
    feed,
    files,
    log,
    overview,
    parts,
    ping,
    secrets,
    slips,
    tokens,
    work,
)
from app.web.api.office import DEPENDENCIES

PATH = "/api/v1"
_MODULES = (
    alerts,
    arrivals,
    artifacts,
    campaigns,
    dead,
    erasing,
    feed,
    files,
    log,
    overview,
    parts,
    ping,
    secrets,
    slips,
    tokens,
    work,
)


def create_api() -> Router:
    """All routes of the API."""
    return Router(
        PATH,
        route_handlers=[handler for module in _MODULES for handler in module.HANDLERS],
        dependencies=DEPENDENCIES,
        # A browser must not take for a page what holds other people's words.
        response_headers={"x-content-type-options": "nosniff"},
        security=[{"bearer": []}],
    )

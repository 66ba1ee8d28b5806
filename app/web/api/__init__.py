"""The API: what operators and receivers see and order, as JSON under ``/api/v1``."""

from __future__ import annotations

from litestar import Router

from app.web.api import tokens
from app.web.api.office import DEPENDENCIES

PATH = "/api/v1"


def create_api() -> Router:
    """All routes of the API."""
    return Router(
        PATH,
        route_handlers=[*tokens.HANDLERS],
        dependencies=DEPENDENCIES,
        security=[{"bearer": []}],
    )

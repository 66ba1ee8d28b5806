"""The console: pages for those who see to it that every file arrives, under ``/console``."""

from __future__ import annotations

from litestar import Router
from litestar.di import Provide
from litestar.exceptions import HTTPException

from app.store.errors import StoreUnavailableError
from app.web.api.office import DEPENDENCIES
from app.web.console import (
    again,
    entry,
    failing,
    files,
    live,
    log,
    orders,
    overview,
    parts,
    replay,
    work,
)
from app.web.console.pages import visit_of
from app.web.console.session import PATH
from app.web.rest import ProblemError

__all__ = ["PATH", "create_console"]

_MODULES = (again, entry, files, live, log, orders, overview, parts, replay, work)


def create_console() -> Router:
    """All pages of the console, and what is ordered on them."""
    return Router(
        PATH,
        route_handlers=[handler for module in _MODULES for handler in module.HANDLERS],
        dependencies=DEPENDENCIES | {"visit": Provide(visit_of, sync_to_thread=False)},
        exception_handlers={
            ProblemError: failing.refused,
            HTTPException: failing.turned_away,
            StoreUnavailableError: failing.unavailable,
            Exception: failing.broken,
        },
        include_in_schema=False,
    )

"""Pages for what did not work: in words, with the way on, and nothing of the request."""

from __future__ import annotations

from typing import Any

from litestar import Request
from litestar.exceptions import HTTPException

from app.telemetry import log
from app.web.console.pages import Page, Visit, local, page, visit_of
from app.web.console.session import PATH
from app.web.problems import TITLES, Problem
from app.web.rest import ProblemError

_KINDS = {401: "authentication", 403: "forbidden", 404: "not-found", 405: "method-not-allowed"}

Asked = Request[Any, Any, Any]


def refused(request: Asked, error: ProblemError) -> Page:
    """The page for a problem that a handler raised."""
    return problem_page(visit_of(request), error.problem)


def turned_away(request: Asked, error: HTTPException) -> Page:
    """The page for what the framework or a guard turned away; without a session, the way in."""
    visit = visit_of(request)
    if error.status_code == 401:
        return page(visit, "sign_in.html", status=401, next=_next(request, visit), wrong=False)
    kind = _KINDS.get(error.status_code, "invalid-request")
    detail = error.detail if error.status_code == 403 else ""
    return problem_page(visit, Problem(error.status_code, kind, detail))


def unavailable(request: Asked, _: Exception) -> Page:
    """The page for a store that cannot be reached."""
    return problem_page(visit_of(request), Problem(503, "unavailable"))


def broken(request: Asked, error: Exception) -> Page:
    """The page for a defect of ours."""
    log.error("api.request.broken", exc_info=error)
    return problem_page(visit_of(request), Problem(500, "internal"))


def problem_page(visit: Visit, problem: Problem) -> Page:
    """A problem in words."""
    return page(
        visit,
        "problem.html",
        status=problem.status,
        title=TITLES[problem.kind],
        problem=problem,
        back=local(visit.query.get("back", PATH)),
    )


def _next(request: Asked, visit: Visit) -> str:
    return visit.here if request.method == "GET" else PATH

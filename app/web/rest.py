"""The framework's side: the API, health, the description of both; errors as problems."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from litestar import Litestar, Request, Response
from litestar.datastructures import State
from litestar.exceptions import HTTPException, ValidationException
from litestar.openapi import OpenAPIConfig
from litestar.openapi.plugins import JsonRenderPlugin
from litestar.openapi.spec import Components, SecurityScheme

from app.ledger import LedgerBusyError
from app.store.errors import StoreUnavailableError
from app.telemetry import log
from app.web import description
from app.web.problems import MEDIA_TYPE, Problem

_KINDS = {
    400: "invalid-request",
    401: "authentication",
    403: "forbidden",
    404: "not-found",
    405: "method-not-allowed",
    409: "conflict",
    410: "gone",
    413: "body-too-large",
    416: "range-not-satisfiable",
    422: "invalid-request",
    503: "unavailable",
}
_LARGEST_BODY_BYTES = 256 * 1024
_HEADERS = {
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cache-control": "no-store",
}


class ProblemError(Exception):
    """Carries a problem from a handler to the answer."""

    def __init__(self, problem: Problem, headers: dict[str, str] | None = None) -> None:
        super().__init__(problem.kind)
        self.problem = problem
        self.headers = headers or {}


def create_rest(handlers: Sequence[Any], state: State, *, version: str) -> Litestar:
    """The application of all that is no delivery."""
    bearer = SecurityScheme(type="http", scheme="bearer", description="laufzettel tokens create")
    app = Litestar(
        route_handlers=list(handlers),
        state=state,
        openapi_config=OpenAPIConfig(
            title="Laufzettel",
            version=version,
            description="Errors are application/problem+json (RFC 9457) with a stable type.",
            components=Components(security_schemes={"bearer": bearer}),
            render_plugins=[JsonRenderPlugin()],
            webhooks=dict(description.messages()),
            use_handler_docstrings=True,
        ),
        exception_handlers={
            ProblemError: _problem,
            HTTPException: _refused,
            StoreUnavailableError: _unavailable,
            RecursionError: _too_deep,
            Exception: _broken,
        },
        request_max_body_size=_LARGEST_BODY_BYTES,
        logging_config=None,
    )
    described = app.openapi_schema
    described.paths = {**(described.paths or {}), "/hooks/{source}": description.intake()}
    return app


def answer(problem: Problem, headers: dict[str, str] | None = None) -> Response[bytes]:
    """A problem as an answer."""
    return Response(
        problem.body,
        status_code=problem.status,
        media_type=MEDIA_TYPE.decode(),
        headers=_HEADERS | (headers or {}),
    )


def _problem(_: Request[Any, Any, Any], error: ProblemError) -> Response[bytes]:
    return answer(error.problem, error.headers)


def _refused(_: Request[Any, Any, Any], error: HTTPException) -> Response[bytes]:
    kind = _KINDS.get(error.status_code, "invalid-request")
    headers = {"www-authenticate": "Bearer"} if error.status_code == 401 else {}
    if allowed := (error.headers or {}).get("Allow"):
        headers["allow"] = allowed
    return answer(Problem(error.status_code, kind, _words(error)), headers)


def _words(error: HTTPException) -> str:
    """Which fields are wrong and why; what the framework says of a request may quote it."""
    if not isinstance(error, ValidationException) or not isinstance(error.extra, list):
        return error.detail if error.status_code == 403 else ""
    told = [
        f"{e.get('key', '')}: {e.get('message', '')}" for e in error.extra if isinstance(e, dict)
    ]
    return "; ".join(told)[:500]


def _unavailable(_: Request[Any, Any, Any], error: StoreUnavailableError) -> Response[bytes]:
    kind = "busy" if isinstance(error, LedgerBusyError) else "unavailable"
    return answer(Problem(503, kind), {"retry-after": "5"})


def _too_deep(_: Request[Any, Any, Any], error: RecursionError) -> Response[bytes]:
    """Only a reader of JSON goes as deep as a request says."""
    del error
    return answer(Problem(400, "invalid-request", "the body is nested too deeply"))


def _broken(_: Request[Any, Any, Any], error: Exception) -> Response[bytes]:
    log.error("api.request.broken", exc_info=error)
    return answer(Problem(500, "internal"))

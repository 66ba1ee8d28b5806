"""A test message to a destination."""

from __future__ import annotations

from typing import Any

from litestar import post
from litestar.params import FromPath, JSONBody

from app.web.api.office import Asker, Here, Pinged, Reasoned, there
from app.web.auth import needs
from app.web.problems import Problem
from app.web.rest import ProblemError


@post(
    "/destinations/{name:str}/test",
    guards=[needs("operator")],
    status_code=200,
    sync_to_thread=True,
    summary="Send a test message",
    tags=["parts"],
)
def destination_test(
    office: Here, who: Asker, name: FromPath[str], data: JSONBody[Reasoned]
) -> Pinged:
    """Signed and sent as all messages are, of type ``laufzettel.ping``; nothing of it is kept."""
    del data
    if who.sources is not None:
        detail = "you are limited to some sources, and this belongs to all"
        raise ProblemError(Problem(403, "forbidden", detail))
    if office.ping is None:
        raise ProblemError(Problem(503, "unavailable", "this process sends no messages"))
    return there(office.ping(name))


HANDLERS: list[Any] = [destination_test]

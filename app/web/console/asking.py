"""The console asks the API's own handlers, so that both say and do the same."""

from __future__ import annotations

from typing import Any, TypeVar

import msgspec
from msgspec import Struct

from app.web.problems import Problem
from app.web.rest import ProblemError

S = TypeVar("S", bound=Struct)


def ask(handler: Any, *told: Any, **named: Any) -> Any:
    """What a handler of the API answers; its guard is not asked, the page's own is."""
    return handler.fn(*told, **named)


def made(kind: type[S], /, **values: Any) -> S:
    """A request's body from the fields of a form; what does not fit is the visitor's to mend."""
    try:
        return msgspec.convert(values, kind)
    except msgspec.ValidationError:
        detail = "give a reason, in 1000 characters at most"
        if values.get("reason", "").strip():
            detail = "a field of the form does not fit"
        raise ProblemError(Problem(422, "invalid-request", detail)) from None

"""A proven delivery on its way to the Ledger."""

from __future__ import annotations

import re
from dataclasses import dataclass

from app.ledger.entries import Origin
from domain.schemes import Request

_TRACE = re.compile(r"[0-9a-f]{2}-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}", re.ASCII)


@dataclass(frozen=True, slots=True, kw_only=True)
class Arrival(Origin):
    """``deadline`` is when the source stops waiting, on the clock that never runs backwards."""

    request: Request
    deadline: float


def trace_of(request: Request) -> str:
    """The W3C trace context that came along; "" for none or a broken one."""
    told = request.header("traceparent") or ""
    return told if _TRACE.fullmatch(told) else ""

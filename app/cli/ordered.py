"""What operators ordered about a file, as its slip tells it: who, what, why."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from app.cli.client import Api

MOST_ORDERS = 100
_DID: Mapping[str, str] = {
    "JobRetried": "tried again",
    "JobCancelled": "stopped it",
    "JobDiscarded": "gave it up",
    "RunStarted": "ordered a new run",
    "FileHeld": "put the file on hold",
    "FileReleased": "lifted the hold",
    "FileErased": "erased the file",
}
_SETTLED = {
    "resend": "sent again",
    "delivered": "settled it: it had arrived",
    "discard": "gave it up",
}


def orders(api: Api, file: str) -> list[dict[str, Any]]:
    """The latest orders about a file, as the audit has them."""
    found: list[dict[str, Any]] = api.page("/audit", limit=MOST_ORDERS, file=file)["items"]
    return found


def told(order: Mapping[str, Any]) -> str:
    """``alice tried again: fixed scanner``."""
    who = order["cause"]["operator"] or "an operator"
    data = order["data"]
    did = _SETTLED.get(data.get("outcome", ""), "") or _DID.get(order["type"], order["type"])
    why = order["cause"]["reason"]
    return f"{who} {did}: {why}" if why else f"{who} {did}"


def numbered(tries: Iterable[Mapping[str, Any]]) -> list[int]:
    """The tries counted on over an operator's order, behind which their own numbers begin at 1."""
    found: list[int] = []
    before = last = 0
    for attempt in tries:
        number = int(attempt["number"])
        before += last if number <= last else 0
        last = number
        found.append(before + number)
    return found

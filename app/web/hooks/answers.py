"""What a source is answered: the contract's statuses and bodies, or what its profile demands."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import Any, Literal, TypeAlias

import msgspec

from app.ledger.requests import Accepted, Conflicted, Repeated
from app.store.receipts import Receipt
from app.web.problems import MEDIA_TYPE, Problem
from domain import profiles
from domain.telling import instant

Header: TypeAlias = tuple[bytes, bytes]
Outcome = Accepted | Repeated | Conflicted
Status = Literal["accepted", "ignored", "duplicate", "conflict"]

_JSON: Header = (b"content-type", b"application/json")
_ALLOWED = b"POST, OPTIONS"


@dataclass(frozen=True, slots=True)
class Answer:
    """A whole answer; ``verdict`` is what it is counted as."""

    status: int
    headers: tuple[Header, ...]
    body: bytes
    verdict: str = ""


@dataclass(frozen=True, slots=True)
class Told:
    """One entry of a delivery and what became of it."""

    event_id: str
    outcome: Outcome

    @property
    def status(self) -> Status:
        """The word for it."""
        match self.outcome:
            case Accepted(receipt=receipt):
                return "ignored" if receipt.verdict == "ignored" else "accepted"
            case Repeated():
                return "duplicate"
            case Conflicted():
                return "conflict"


def problem(found: Problem, *headers: Header, verdict: str = "rejected") -> Answer:
    """An error as an answer."""
    return Answer(found.status, ((b"content-type", MEDIA_TYPE), *headers), found.body, verdict)


def unavailable(kind: Literal["busy", "unavailable"], *, retry_after_s: int) -> Answer:
    """Not known to be stored: come again later."""
    wait = (b"retry-after", str(retry_after_s).encode())
    return problem(Problem(503, kind), wait, verdict="failed")


def not_allowed() -> Answer:
    """The method is none that an intake address has."""
    return problem(Problem(405, "method-not-allowed"), (b"allow", _ALLOWED), verdict="")


def handshake(found: profiles.Handshake) -> Answer:
    """What the source wants to hear before it sends anything."""
    headers = tuple((n.encode("latin-1"), v.encode("latin-1")) for n, v in found.headers)
    return Answer(found.status, headers, found.body)


def single(told: Told, wanted: profiles.Answer) -> Answer:
    """The answer to a delivery of one event."""
    receipt = told.outcome.receipt
    if told.status == "conflict":
        more = {"event_id": told.event_id, "receipt": receipt_of(receipt)}
        found = Problem(wanted.conflict_status, "event-conflict", more=more)
        return problem(found, verdict="conflict")
    body = {"status": told.status, "event_id": told.event_id, "receipt": receipt_of(receipt)}
    if told.status == "duplicate":
        return _success(200, body, wanted, "duplicate")
    place = f"/api/v1/receipts/{receipt.name}".encode()
    return _success(202, body, wanted, receipt.verdict, (b"location", place))


def batch(
    told: Mapping[int, Told], rejected: Sequence[profiles.Rejected], wanted: profiles.Answer
) -> Answer:
    """The answer to several events, in the request's order: its own receipt, or why it has none.

    ``told`` has each by its index in the request.
    """
    entries = [_entry(index, one) for index, one in told.items()] + [_refusal(r) for r in rejected]
    entries.sort(key=itemgetter("index"))
    words = [one.status for one in told.values()]
    counts = {word: words.count(word) for word in ("accepted", "ignored", "duplicate", "conflict")}
    more = {"counts": counts | {"rejected": len(rejected)}, "events": entries}
    if not told:
        return problem(Problem(422, "event-contract", _breach(rejected), more))
    if set(words) == {"conflict"}:
        found = Problem(wanted.conflict_status, "event-conflict", more=more)
        return problem(found, verdict="conflict")
    if set(words) <= {"duplicate", "conflict"}:
        return _success(200, {"status": "duplicate"} | more, wanted, "duplicate")
    word = "accepted" if "accepted" in words else "ignored"
    return _success(202, {"status": word} | more, wanted, word)


def bell(wanted: profiles.Answer) -> Answer:
    """The source only rang: a ping or a test, with nothing in it."""
    return _success(202, {"status": "ignored"}, wanted, "ignored")


def receipt_of(receipt: Receipt) -> dict[str, str]:
    """The receipt as it is told, word for word the same on each repeat."""
    return {
        "id": receipt.name,
        "accepted_at": instant(receipt.accepted_ms * 1000),
        "digest": f"sha256:{receipt.digest}",
    }


def _entry(index: int, told: Told) -> dict[str, Any]:
    receipt = receipt_of(told.outcome.receipt)
    return {"status": told.status, "index": index, "event_id": told.event_id, "receipt": receipt}


def _refusal(found: profiles.Rejected) -> dict[str, Any]:
    breach = found.breach
    words = {"field": breach.field, "reason": breach.reason}
    return {"status": "rejected", "index": found.index} | words


def _breach(rejected: Sequence[profiles.Rejected]) -> str:
    return f"{rejected[0].breach.field} {rejected[0].breach.reason}" if rejected else ""


def _success(
    status: int, body: dict[str, Any], wanted: profiles.Answer, verdict: str, *headers: Header
) -> Answer:
    more = tuple((n.encode("latin-1"), v.encode("latin-1")) for n, v in wanted.headers)
    data = msgspec.json.encode(body) if wanted.body is None else wanted.body
    kind = () if any(name.lower() == b"content-type" for name, _ in more) else (_JSON,)
    return Answer(wanted.status or status, (*kind, *more, *headers), data, verdict)

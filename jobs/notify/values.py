"""What a notification is told and what it tells."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime

from domain.outcomes import Again, Dead, Done, Unclear
from jobs.outbound import Fixed
from jobs.tools import Credentials, Header, Target, Timing

# (webhook-id, time, body) to the value of webhook-signature.
Sign = Callable[[str, datetime, bytes], str]


@dataclass(frozen=True, slots=True)
class NotifySettings:
    """One destination as a sender sees it.

    An answer means "delivered" if its status matches one of ``delivered_status`` ("2xx", "200")
    and, where ``delivered_pointer`` is set, the JSON there equals ``delivered_equals``.
    ``reference`` is a JSON Pointer into the answer or "header:NAME". ``ask_url`` holds
    ``{message_id}``.
    """

    name: str
    url: str = field(repr=False)
    sign: Sign | None = field(default=None, repr=False)
    method: str = "POST"
    headers: tuple[Header, ...] = field(default=(), repr=False)
    credentials: Credentials = field(default_factory=Fixed)
    target: Target = field(default_factory=Target)
    timeout_s: float = 10.0
    permanent: tuple[int, ...] = (400, 410, 413, 422)
    delivered_status: tuple[str, ...] = ("2xx",)
    delivered_pointer: str = ""
    delivered_equals: str | int | bool | None = None
    reference: str = ""
    ask_method: str = "GET"
    ask_url: str = field(default="", repr=False)


@dataclass(frozen=True, slots=True)
class NotifyJob:
    """One stored message to send: ``body`` are its exact bytes, the same at each attempt.

    ``trace`` is the trace context that the receiver may go on with.
    """

    message_id: str
    destination: NotifySettings
    attempt: int
    body: bytes = field(repr=False)
    content_type: str = "application/json"
    trace: str = ""


@dataclass(frozen=True, slots=True)
class Attempt:
    """What operators see of one try. ``url`` is without query; ``status`` is none without answer.

    Headers that may hold secrets are hidden, and where the receiver echoes ours they are blanked.
    """

    url: str
    at: datetime
    duration_ms: int
    status: int | None = None
    method: str = "POST"
    request_headers: tuple[Header, ...] = ()
    timing: Timing | None = None
    response_headers: tuple[Header, ...] = ()
    response_body: str = ""
    error: str = ""


@dataclass(frozen=True, slots=True)
class Delivered:
    """The receiver has it; ``reference`` is its own id for it, "" if it told none."""

    reference: str = ""


NotifyOutcome = Done[Delivered] | Again | Dead | Unclear

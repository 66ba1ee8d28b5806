"""What a batch has decided and not yet written."""

from __future__ import annotations

from dataclasses import dataclass, field

from app.ledger.requests import Finish
from app.store.codec import Stored
from app.store.deliveries import Delivery
from app.store.leases import Lease
from domain.commands import Body


@dataclass(slots=True)
class Gathered:
    """What a batch is going to write."""

    now_ms: int
    stored: list[Stored] = field(default_factory=list)
    bodies: list[tuple[Body, int]] = field(default_factory=list)
    payloads: list[tuple[int, bytes | None, int]] = field(default_factory=list)
    deliveries: list[tuple[int, Delivery]] = field(default_factory=list)
    verdicts: dict[str, str] = field(default_factory=dict)
    ended: list[Lease] = field(default_factory=list)
    closed: list[tuple[Lease, Finish]] = field(default_factory=list)
    erased: dict[str, int] = field(default_factory=dict)
    expired: list[str] = field(default_factory=list)
    condemned: set[str] = field(default_factory=set)

"""What a batch has decided and not yet written."""

from __future__ import annotations

from dataclasses import dataclass, field

from app.ledger.requests import Finish
from app.store.codec import Stored
from app.store.deliveries import Delivery
from app.store.leases import Lease
from domain.commands import Body
from domain.events import ContentExpired, FileErased, MessageDelivered, MessageResolved
from domain.states import File

Forgetting = FileErased | ContentExpired | MessageDelivered | MessageResolved
FORGETTING = (FileErased, ContentExpired, MessageDelivered, MessageResolved)


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

    def forget(
        self, event: Forgetting, revision: int, stream: str, states: tuple[File, File]
    ) -> None:
        """Note what this event takes away, between the states before and after the command."""
        before, after = states
        match event:
            case FileErased():
                self.erased[stream] = revision
                self.condemned |= _digests(before) - _digests(after)
            case ContentExpired(messages=messages):
                self.expired.extend(messages)
                self.condemned |= _digests(before) - _digests(after)
            case MessageDelivered(message=message) | MessageResolved(message=message):
                # What tells of an erasure names the file, and is not needed once it is known.
                if after.messages[message].erased:
                    self.expired.append(message)


def _digests(file: File) -> set[str]:
    return {artifact.sha256 for made in file.made.values() for artifact in made}

"""Events of the installation itself: recipes, pauses, tokens, conflicts, the log's own history."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

from domain.events import Event, FileEvent, SourceFact, private

# The stream of the installation itself: recipes, pauses, tokens, configurations.
CONTROL_STREAM = "control"


@dataclass(frozen=True, slots=True, kw_only=True)
class InstallationCreated(Event):
    """The first event of every log."""

    installation: str


@dataclass(frozen=True, slots=True, kw_only=True)
class LogRestored(Event):
    """The store was brought back from a backup; what followed the backup is another history."""

    incarnation: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RecipeDefined(Event):
    """A recipe's canonical form, before its first use."""

    digest: str
    form: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfigurationChanged(Event):
    """A start under another configuration: its digest and the changed keys, no values."""

    digest: str
    keys: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Paused(Event):
    """Work of this part stopped being started: ``destination:erp``, ``source:x``, ``all``."""

    what: str
    reason: str = private()


@dataclass(frozen=True, slots=True, kw_only=True)
class Resumed(Event):
    """Work of this part may start again."""

    what: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenCreated(Event):
    """Access was given; the token itself is nowhere."""

    token: str
    role: str
    scope: tuple[str, ...] = ()
    expires_ms: int = 0
    name: str = private()


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenRevoked(Event):
    """Access was taken away."""

    token: str


@dataclass(frozen=True, slots=True, kw_only=True)
class DeliveryQuarantined(Event):
    """Other bytes came under a known event id."""

    source: str
    event: str
    delivery: str
    first_digest: str
    other_digest: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ConflictResolved(Event):
    """An operator settled a quarantined delivery."""

    delivery: str
    outcome: Literal["accepted", "dismissed"]


@dataclass(frozen=True, slots=True, kw_only=True)
class BodyShown(Event):
    """An admin was shown the whole body of a delivery, without masks."""

    delivery: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SubscriptionNoticed(SourceFact):
    """A source spoke of the subscription itself: missed, removed, reauthorise, expiring."""

    type: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CampaignBegun(Event):
    """An operator ordered many messages to be sent again; so many matched at that moment."""

    campaign: str
    count: int
    selection: str = private()


@dataclass(frozen=True, slots=True, kw_only=True)
class CampaignEnded(Event):
    """A campaign is through, or was stopped for good."""

    campaign: str
    outcome: Literal["finished", "stopped"]
    arrived: int
    failed: int


ControlEvent = (
    InstallationCreated
    | LogRestored
    | RecipeDefined
    | ConfigurationChanged
    | Paused
    | Resumed
    | TokenCreated
    | TokenRevoked
    | DeliveryQuarantined
    | ConflictResolved
    | BodyShown
    | CampaignBegun
    | CampaignEnded
    | SubscriptionNoticed
)
AnyEvent = FileEvent | ControlEvent

EVENT_TYPES: dict[str, type[Event]] = {
    kind.__name__: kind for union in (FileEvent, ControlEvent) for kind in get_args(union)
}

"""What a profile is, as data, and what reading a delivery gives."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from datetime import datetime
from typing import Literal, TypeAlias

from domain import comparison
from domain.schemes import Key, Primitives, Request, Scheme
from domain.signatures import Refused, Verified
from domain.strict_json import InvalidJson, JsonValue

# "changed" says that something changed and the source's change feed has to be asked what.
Action = Literal["version", "deleted", "restored", "renamed", "lifecycle", "changed", "ignore"]
Comparator = Literal["integer", "text", "hex", "instant"]
Order = Literal["version", "sequence", "time"]
Where: TypeAlias = "str | tuple[str, ...]"


@dataclass(frozen=True, slots=True)
class Spot:
    """One place of the map, taken apart once; ``steps`` are those of a pointer."""

    kind: Literal["pointer", "header", "query", "template"]
    text: str
    steps: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class FieldMap:
    """Where each field is found: ``/json/pointer``, ``header:NAME``, or a text with ``{...}``.

    Several places are alternatives, the first that is present counts. In a text ``{/a/b}`` and
    ``{header:NAME}`` stand for what is there, ``{file_id}`` and the like for a field read before,
    ``{host}`` for the source's first download host, ``{now}`` for the time of reading. In ``url``
    they are percent-encoded; ``{+...}`` keeps slashes. ``""``: the source does not tell it.
    """

    event_id: Where = ""
    delivery_id: Where = ""
    type: Where = ""
    file_id: Where = ""
    version: Where = ""
    name: Where = ""
    sequence: Where = ""
    occurred_at: Where = ""
    size: Where = ""
    sha256: Where = ""
    media_type: Where = ""
    project: Where = ""
    url: Where = ""
    previous_name: Where = ""

    def over(self, other: FieldMap) -> FieldMap:
        """This map where it says something, the other one elsewhere."""
        names = [f.name for f in fields(self)]
        return FieldMap(**{name: getattr(self, name) or getattr(other, name) for name in names})


@dataclass(frozen=True, slots=True)
class HmacSettings:
    """A scheme of one's own: the keys of ``profile = "hmac"``, as the configuration names them.

    ``timestamp`` is ``header:NAME``, or ``entry:t=`` for an entry of the signature header, which
    ``{timestamp}`` then stands for.
    """

    algorithm: Literal["sha256", "sha512", "sha1"] = "sha256"
    key: Literal["text", "hex", "base64"] = "text"
    encoding: Literal["hex", "base64"] = "hex"
    signature: str = ""
    prefix: str = ""
    separator: str = ""
    signed: str = "{body}"
    timestamp: str = ""


@dataclass(frozen=True, slots=True)
class SourceSettings:
    """What the configuration says of one source; the defaults are those of the profile.

    ``types`` are (their word, our action). ``allow`` are the topics, channels or origins that may
    speak, where the profile has such. ``host`` is the first of the download hosts.
    """

    profile: str = "standard-webhooks"
    secrets: tuple[str, ...] = field(default=(), repr=False)
    tolerance_s: float | None = None
    hmac: HmacSettings | None = None
    mapping: FieldMap = field(default_factory=FieldMap)
    types: tuple[tuple[str, Action], ...] = ()
    batch: str | None = None
    order: Order | None = None
    same: Literal["bytes", "json"] | None = None
    volatile: tuple[str, ...] = ()
    unknown_fields: Literal["keep", "refuse"] = "keep"
    unknown_types: Literal["ignore", "refuse"] = "ignore"
    key_style: Literal["form", "raw"] | None = None
    allow: tuple[str, ...] = ()
    host: str = ""


@dataclass(frozen=True, slots=True)
class SettingsError:
    """What is wrong with a source's settings: the key, why, and how to mend it."""

    key: str
    reason: str
    mend: str = ""


@dataclass(frozen=True, slots=True)
class SourceEvent:
    """What a source says happened to a file, read and judged.

    ``type`` is their word, ``action`` ours. ``order`` is what orders this file's versions, as
    told, with the ``comparator`` to read it by; ``None`` where the source does not tell.
    ``item`` is the part of the body that told it (the whole body where there is no batch) and
    ``index`` its place. For ``lifecycle``, ``changed`` and ``ignore`` ``file_id`` may be "".
    """

    event_id: str
    type: str
    action: Action
    file_id: str = ""
    version: str | None = None
    delivery_id: str = ""
    name: str = field(default="", repr=False)
    previous_name: str = field(default="", repr=False)
    project: str = field(default="", repr=False)
    size_bytes: int | None = None
    sha256: str = ""
    media_type: str = ""
    url: str = field(default="", repr=False)
    sequence: int | None = None
    occurred_at: datetime | None = None
    order: str | None = None
    comparator: Comparator | None = None
    index: int = 0
    item: JsonValue = field(default=None, repr=False)


@dataclass(frozen=True, slots=True)
class ContractBreach:
    """The body breaks the source's contract: the field is named, its value never repeated."""

    field: str
    reason: str


@dataclass(frozen=True, slots=True)
class Rejected:
    """An entry of a batch that breaks the contract; the others go on."""

    index: int
    breach: ContractBreach
    item: JsonValue = field(default=None, repr=False)


@dataclass(frozen=True, slots=True)
class Mapped:
    """What a delivery tells. Empty where the source only rang the bell (a ping, a test event)."""

    events: tuple[SourceEvent | Rejected, ...]
    is_batch: bool = False


@dataclass(frozen=True, slots=True)
class Handshake:
    """The answer that the source demands; nothing is stored.

    ``visit`` is an address to call afterwards, proven by the signature (SNS confirmation).
    """

    status: int = 200
    headers: tuple[tuple[str, str], ...] = ()
    body: bytes = b""
    visit: str = field(default="", repr=False)


Reading: TypeAlias = "Mapped | InvalidJson | ContractBreach | Handshake"


@dataclass(frozen=True, slots=True)
class Item:
    """One entry as a profile's own function prepared it for the map.

    ``breach`` says that it could not; ``action`` what it means where the type alone does not tell.
    """

    value: JsonValue
    breach: ContractBreach | None = None
    action: Action | None = None


@dataclass(frozen=True, slots=True)
class Answer:
    """What a source takes for success, how long it waits, what a conflict may be answered with.

    ``echo`` is a request header that every answer must carry back.
    """

    status: int | None = None
    body: bytes | None = None
    headers: tuple[tuple[str, str], ...] = ()
    echo: str = ""
    wait_s: float = 3.0
    conflict_status: int = 409


Entries: TypeAlias = "list[Item] | ContractBreach | Handshake"
Items = Callable[["Source", Request, JsonValue], Entries]
Verifier = Callable[["Source", Request, datetime, Primitives], Verified | Refused]
Greeting = Callable[["Source", Request], "Handshake | None"]
Body = Callable[[Request], "JsonValue | InvalidJson"]


@dataclass(frozen=True, slots=True)
class Profile:
    """How one provider's deliveries are verified, read and answered.

    What cannot be data is one of four small functions: ``verifier`` where fields of the body are
    the proof, ``greeting`` for unsigned handshakes, ``body`` where the body is not JSON as it
    stands, ``items`` where entries have to be taken apart before the map can read them.
    ``texts_are_numbers``: the source writes sizes and sequences as texts, by its documentation.
    ``is_batch``: entries travel together and may be regrouped on a repeat, so each stands alone.
    ``risk`` is what the profile's page warns of.
    """

    name: str
    title: str = ""
    schemes: tuple[Scheme, ...] = ()
    mapping: FieldMap = field(default_factory=FieldMap)
    types: Mapping[str, Action] = field(default_factory=dict)
    batch: str | None = None
    default_action: Action = "ignore"
    order: Order = "time"
    comparator: Comparator | None = None
    answer: Answer = field(default_factory=Answer)
    same: Literal["bytes", "json"] = "bytes"
    volatile: tuple[str, ...] = ()
    verifier: Verifier | None = None
    greeting: Greeting | None = None
    body: Body | None = None
    items: Items | None = None
    needs_secrets: bool = True
    needs_url: bool = True
    ids_are_texts: bool = False
    texts_are_numbers: bool = False
    is_unsigned: bool = False
    has_signed_id: bool = True
    is_batch: bool = False
    risk: str = ""


@dataclass(frozen=True, slots=True)
class Source:
    """A profile made ready for one configured source: keys loaded, maps laid over each other."""

    profile: Profile
    schemes: tuple[Scheme, ...]
    keys: tuple[Key, ...]
    mapping: FieldMap
    spots: Mapping[str, tuple[Spot, ...]] = field(repr=False)
    types: Mapping[str, Action]
    batch: str | None
    order: Order
    settings: SourceSettings

    @property
    def rule(self) -> str:
        """The rule, as it is stored, by which repeats of an event are compared."""
        same = self.settings.same or self.profile.same
        return comparison.rule(same, (*self.profile.volatile, *self.settings.volatile))

    @property
    def sender(self) -> tuple[str, ...]:
        """Who may speak, where the profile knows senders."""
        return self.settings.allow

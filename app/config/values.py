"""The configuration as frozen values: what the rest of the system is built from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from app.config.secret import Secret, SecretUrl
from app.config.table import Problem
from domain import profiles
from domain.breaker import BreakerPolicy
from domain.feeds import Feed
from domain.recipes import Recipe
from domain.schedule import RetryPolicy

ConsoleRole = Literal["viewer", "operator", "admin"]


@dataclass(frozen=True, slots=True)
class Bearer:
    """``Authorization: Bearer …``."""

    token: Secret


@dataclass(frozen=True, slots=True)
class Basic:
    """``Authorization: Basic …``."""

    user: str
    password: Secret


@dataclass(frozen=True, slots=True)
class HeaderAuth:
    """A header of its own name that carries the secret."""

    name: str
    value: Secret


@dataclass(frozen=True, slots=True)
class OAuth2:
    """Client credentials: a token is fetched from ``token_url`` and renewed by itself."""

    token_url: str
    client_id: str
    client_secret: Secret
    scope: str = ""


Auth = Bearer | Basic | HeaderAuth | OAuth2


@dataclass(frozen=True, slots=True)
class Retention:
    """How long each kind is kept, in seconds; ``None`` is for ever."""

    payloads_s: float | None = 30 * 86400.0
    deliveries_s: float | None = 90 * 86400.0
    messages_s: float | None = 90 * 86400.0
    deleted_s: float | None = 30 * 86400.0
    artifacts_s: float | None = None


@dataclass(frozen=True, slots=True)
class Tls:
    """Certificate and key of our own port."""

    cert_path: Path
    key_path: Path


@dataclass(frozen=True, slots=True)
class ProxySignIn:
    """Users that a trusted proxy has signed in: the header that names them, and what they may.

    ``role`` is of those whom ``roles`` does not name; "" lets none of them in.
    """

    header: str
    role: ConsoleRole | Literal[""] = ""
    roles: tuple[tuple[str, ConsoleRole], ...] = ()

    def role_of(self, name: str) -> ConsoleRole | Literal[""]:
        """What the user of this name may; "" for nothing."""
        return dict(self.roles).get(name, self.role)


@dataclass(frozen=True, slots=True)
class Installation:
    """The parts that this installation stands on. Relative paths start at the file's folder."""

    database: SecretUrl
    database_direct: SecretUrl | None
    broker: SecretUrl
    artifacts: SecretUrl
    listen_host: str
    listen_port: int
    base_url: str
    public_url: str
    trusted_proxies: tuple[str, ...] = ()
    sign_in: ProxySignIn | None = None
    tls: Tls | None = None
    database_path: Path | None = None  # of SQLite
    artifacts_path: Path | None = None  # of a folder

    @property
    def database_url(self) -> str:
        """The database's whole address, password and all: for the one who connects."""
        path = self.database_path
        return self.database.reveal() if path is None else f"sqlite:///{path}"

    @property
    def artifacts_url(self) -> str:
        """The whole address of the store of artifacts."""
        path = self.artifacts_path
        return self.artifacts.reveal() if path is None else f"file:{path}"

    @property
    def is_embedded(self) -> bool:
        """Whether the store is SQLite, which one process owns."""
        return self.database_path is not None


@dataclass(frozen=True, slots=True)
class Download:
    """Where a source's bytes may come from, and how patient we are."""

    hosts: tuple[str, ...] = ()
    auth: Auth | None = None
    max_size_bytes: int = 5 * 2**30
    timeout_s: float = 60.0
    min_rate_bytes_s: int = 16 * 2**10
    total_s: float | None = None
    fresh_link: str = ""
    fresh_pointer: str = "/url"
    rewrites: bool = False
    retry: RetryPolicy = field(default_factory=RetryPolicy)
    breaker: BreakerPolicy = field(default_factory=BreakerPolicy)


@dataclass(frozen=True, slots=True)
class Changes:
    """Where a source's change feed is walked, for which drive or folder, and how often at least."""

    feed: Feed = field(repr=False)
    base: str
    scope: str = ""
    every_s: float = 900.0


@dataclass(frozen=True, slots=True)
class Source:
    """A system that announces files; ``ready`` verifies and reads its deliveries."""

    name: str
    ready: profiles.Source
    was: tuple[str, ...] = ()
    secrets: tuple[Secret, ...] = ()
    max_body_bytes: int = 2**20
    same: Literal["bytes", "json"] = "bytes"
    volatile: tuple[str, ...] = ()
    repeat_of_failed: Literal["receipt", "retry"] = "receipt"
    keep_body: Literal["full", "masked", "none"] = "full"
    private_fields: tuple[str, ...] = ()
    unsigned: bool = False
    download: Download = field(default_factory=Download)
    retention: Retention = field(default_factory=Retention)
    changes: Changes | None = None

    @property
    def identity(self) -> str:
        """Its name in derived ids: the first that it ever had."""
        return self.was[0] if self.was else self.name


@dataclass(frozen=True, slots=True)
class ConfiguredRecipe:
    """A recipe, its former names, and how long what it makes is kept."""

    recipe: Recipe
    was: tuple[str, ...] = ()
    retention: Retention = field(default_factory=Retention)


@dataclass(frozen=True, slots=True)
class Delivered:
    """When an answer counts as "delivered": its status, and what must stand in its body."""

    status: tuple[str, ...] = ("2xx",)
    pointer: str = ""
    equals: str | int | bool | None = None


@dataclass(frozen=True, slots=True)
class Destination:
    """A system that is told. ``format`` is ``body`` where the message is mapped by ``body``."""

    name: str
    url: str = field(repr=False)
    was: tuple[str, ...] = ()
    method: Literal["POST", "PUT", "PATCH"] = "POST"
    secrets: tuple[Secret, ...] = ()
    auth: Auth | None = None
    headers: tuple[tuple[str, str], ...] = field(default=(), repr=False)
    ca: Path | None = None
    client_cert: Path | None = None
    proxy: SecretUrl | None = None
    format: Literal["standard", "cloudevents", "body"] = "standard"
    body: tuple[tuple[str, str], ...] = ()
    types: tuple[str, ...] = ("file.version.completed", "file.version.failed")
    order: Literal["none", "file"] = "none"
    on_dead: Literal["continue", "block"] = "continue"
    superseded: Literal["skip", "send"] = "skip"
    unclear: Literal["resend", "hold", "ask"] = "resend"
    ask: str = field(default="", repr=False)  # the address asked by GET, with {message_id}
    delivered: Delivered = field(default_factory=Delivered)
    permanent: tuple[int, ...] = (400, 410, 413, 422)
    reference: str = ""
    timeout_s: float = 10.0
    concurrency: int = 8
    rate_per_s: float | None = None
    retry: RetryPolicy = field(default_factory=RetryPolicy)
    breaker: BreakerPolicy = field(default_factory=BreakerPolicy)
    private: bool = False


@dataclass(frozen=True, slots=True)
class Alerts:
    """Who hears of trouble, and when silence or waiting is trouble."""

    notify: tuple[str, ...] = ()
    silent_source_s: float = 86400.0
    oldest_waiting_s: float = 900.0


@dataclass(frozen=True, slots=True)
class TracePlan:
    """Where spans go, and which share of the traces that begin here is kept."""

    endpoint: str = field(default="", repr=False)
    auth: Bearer | Basic | HeaderAuth | None = None
    share: float = 1.0


@dataclass(frozen=True, slots=True)
class Config:
    """All of it. ``fingerprints`` has a short hash for each key of the file, no value."""

    path: Path
    installation: Installation
    sources: tuple[Source, ...]
    recipes: tuple[ConfiguredRecipe, ...]
    destinations: tuple[Destination, ...]
    alerts: Alerts
    retention: Retention
    digest: str
    fingerprints: Mapping[str, str]
    step_auth: Mapping[str, Auth] = field(default_factory=dict)
    traces: TracePlan = field(default_factory=TracePlan)
    notes: tuple[Problem, ...] = ()

    def source(self, name: str) -> Source | None:
        """The source of that name."""
        return next((source for source in self.sources if source.name == name), None)

    def destination(self, name: str) -> Destination | None:
        """The destination of that name."""
        return next((place for place in self.destinations if place.name == name), None)


@dataclass(frozen=True, slots=True)
class Invalid:
    """The file cannot be used: every reason, each with its mend."""

    problems: tuple[Problem, ...]

"""Where an installation under test keeps its things, and what is asked of them beside it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import sqlalchemy as sa

from app.artifacts import Blobs, open_blobs
from app.store import tables as t
from app.store.engine import Store, open_store
from app.store.shared_tables import sequencer
from tests.brokers import Valkey
from tests.buckets import Bucket
from tests.stores import Postgres

_OPEN = (
    "SELECT (SELECT count(*) FROM jobs WHERE state IN ('ready', 'waiting'))"
    " + (SELECT count(*) FROM messages WHERE state IN ('pending', 'waiting', 'unclear'))"
    " + (SELECT count(*) FROM leases)"
)

_UNPLACED = "SELECT count(*) FROM unsequenced"


class Place(Protocol):
    """One way of keeping things; ``parts`` are the processes that share them, the first listens."""

    @property
    def database(self) -> str: ...
    @property
    def broker(self) -> str: ...
    @property
    def artifacts(self) -> str: ...
    @property
    def parts(self) -> tuple[str, ...]: ...
    @property
    def environ(self) -> Mapping[str, str]: ...

    def rows(self, query: str) -> list[tuple[Any, ...]]:
        """What the store holds, read beside the running processes."""
        ...

    def unfinished(self) -> int:
        """How much open work there is."""
        ...

    def bury(self, pid: int) -> None:
        """Let the time pass that a dead process's rights still run."""
        ...

    def save(self) -> None:
        """Copy the store as it is; no process has it open."""
        ...

    def bring_back(self) -> None:
        """Put the copy in the store's place."""
        ...

    def store(self) -> Store:
        """The store as the program opens it."""
        ...

    def blobs(self) -> Blobs:
        """The artifacts as the program opens them."""
        ...

    def scratch(self) -> Path:
        """The folder in which effects have their own."""
        ...


@dataclass(frozen=True)
class Embedded:
    """One process, a SQLite file, a folder of artifacts."""

    folder: Path
    database: str = "sqlite:///store.db"
    broker: str = "memory:"
    artifacts: str = "file:artifacts"
    parts: tuple[str, ...] = ("run",)
    environ: Mapping[str, str] = field(default_factory=dict)

    def rows(self, query: str) -> list[tuple[Any, ...]]:
        return _rows(f"sqlite:///file:{self.folder}/store.db?mode=ro&uri=true", query)

    def unfinished(self) -> int:
        return int(self.rows(_OPEN)[0][0])

    def bury(self, pid: int) -> None:
        """The next owner of the store ends what the last one left."""

    def save(self) -> None:
        (self.folder / "old.db").write_bytes((self.folder / "store.db").read_bytes())

    def bring_back(self) -> None:
        (self.folder / "store.db").write_bytes((self.folder / "old.db").read_bytes())

    def store(self) -> Store:
        return open_store(f"sqlite:///{self.folder}/store.db")

    def blobs(self) -> Blobs:
        return open_blobs(f"file:{self.folder}/artifacts")

    def scratch(self) -> Path:
        return self.folder / "artifacts/.scratch"


@dataclass(frozen=True)
class Services:
    """The servers that several processes share."""

    postgres: Postgres
    valkey: Valkey
    bucket: Bucket


@dataclass(frozen=True)
class Shared:
    """A web process and two workers on PostgreSQL, Valkey and S3."""

    folder: Path
    services: Services
    database: str
    broker: str
    artifacts: str
    environ: Mapping[str, str]
    parts: tuple[str, ...] = ("web", "worker", "mate")

    def rows(self, query: str) -> list[tuple[Any, ...]]:
        return _rows(self.database, query)

    def unfinished(self) -> int:
        return sum(int(self.rows(query)[0][0]) for query in (_OPEN, _UNPLACED))

    def bury(self, pid: int) -> None:
        """A lease runs for a minute, the sequencer's for a quarter: both end now."""
        with _engine(self.database).begin() as connection:
            for table in (t.leases, sequencer):
                its = table.c.owner.contains(f":{pid}:")
                connection.execute(table.update().where(its).values(until_ms=0))

    def save(self) -> None:
        name = self._name
        self.services.postgres.execute(f"CREATE DATABASE {name}_old TEMPLATE {name}")

    def bring_back(self) -> None:
        name = self._name
        self.services.postgres.drop(self.database)
        self.services.postgres.execute(f"CREATE DATABASE {name} TEMPLATE {name}_old")

    def store(self) -> Store:
        return open_store(self.database)

    def blobs(self) -> Blobs:
        return open_blobs(self.artifacts, options=self.services.bucket.options)

    def scratch(self) -> Path:
        return self.folder / "var/scratch"

    @property
    def _name(self) -> str:
        return str(sa.make_url(self.database).database)


def shared(folder: Path, services: Services) -> Shared:
    """A place of its own in these services."""
    database = services.postgres.fresh()
    name = sa.make_url(database).database
    return Shared(
        folder,
        services,
        database,
        services.valkey.url,
        services.bucket.url.replace("/here?", f"/{name}?"),
        {f"AWS_{key.upper()}": value for key, value in services.bucket.options.items()},
    )


def _engine(url: str) -> sa.Engine:
    address = sa.make_url(url)
    if address.get_backend_name() == "postgresql":
        address = address.set(drivername="postgresql+psycopg")
    return sa.create_engine(address, poolclass=sa.pool.NullPool)


def _rows(url: str, query: str) -> list[tuple[Any, ...]]:
    with _engine(url).connect() as connection:
        return [tuple(row) for row in connection.exec_driver_sql(query)]

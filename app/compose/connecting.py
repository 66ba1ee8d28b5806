"""What ``check`` asks beyond the file: the parts themselves, and the store of what runs."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from dataclasses import dataclass
from urllib.parse import urlsplit

from app.artifacts import BlobsError, open_blobs
from app.compose import problem_of
from app.compose.preparing import orphans
from app.config import Config, Problem, changed_keys
from app.store import installation, migrate
from app.store.engine import open_reading
from app.store.errors import SchemaError, StoreUnavailableError
from jobs.broker import BrokerConnectionError, ping

_NO_BLOB = "0" * 64


@dataclass(frozen=True, slots=True)
class Compared:
    """How a configuration differs from that of the last start, and what it would orphan."""

    changed: tuple[str, ...]
    orphans: tuple[Problem, ...]


def unreachable(config: Config) -> Iterator[Problem]:
    """Ask every part for an answer, one after the other; gives those that have none.

    Nothing is written, and no destination is sent anything: only its name is looked up. A folder
    for artifacts is made where it is missing, as a start would.
    """
    yield from _database(config)
    yield from _broker(config)
    yield from _artifacts(config)
    for place in config.destinations:
        host = urlsplit(place.url).hostname or ""
        try:
            socket.getaddrinfo(host, None)
        except OSError:
            what = f"the name {host} leads to no address"
            yield _problem(config, f"destinations.{place.name}.url", what, "correct the name")


def _database(config: Config) -> Iterator[Problem]:
    place = config.installation
    if place.database_path is not None and not place.database_path.exists():
        return  # the first start makes it
    try:
        store = open_reading(place.database_url)
        try:
            migrate.check(store)
        finally:
            store.close()
    except (SchemaError, StoreUnavailableError) as error:
        yield problem_of(config, "database", error)


def _broker(config: Config) -> Iterator[Problem]:
    try:
        ping(config.installation.broker.reveal())
    except BrokerConnectionError as error:
        what = f"the broker does not answer ({error})"
        yield _problem(config, "laufzettel.broker", what, "start it, or correct its address")


def _artifacts(config: Config) -> Iterator[Problem]:
    try:
        open_blobs(config.installation.artifacts_url).exists(_NO_BLOB)
    except BlobsError as error:
        mend = "start it, or correct its address and credentials"
        yield _problem(config, "laufzettel.artifacts", str(error), mend)


def compared(config: Config) -> Compared | Problem:
    """Compare with the store as the last start left it, beside whoever works on it now."""
    place = config.installation
    if place.database_path is not None and not place.database_path.exists():
        mend = "start it with: laufzettel run"
        return _problem(config, "laufzettel.database", "nothing has run there yet", mend)
    try:
        store = open_reading(place.database_url)
        try:
            migrate.check(store)
            with store.read() as connection:
                before = installation.last_configuration(connection) or {}
            keys = changed_keys(before, dict(config.fingerprints))
            return Compared(keys, orphans(config, store))
        finally:
            store.close()
    except (SchemaError, StoreUnavailableError) as error:
        return problem_of(config, "database", error)


def _problem(config: Config, key: str, what: str, mend: str) -> Problem:
    return Problem(config.path.name, key, what, mend)

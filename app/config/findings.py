"""What is allowed and yet unsafe: the warnings of ``check``."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from app.config.destination_tables import signing_key
from app.config.secret import Secret
from app.config.table import Problem
from app.config.values import Config, Destination, Source
from domain import profiles
from domain.addresses import host_of, is_loopback

SHORTEST_SECRET_BYTES = 24


@dataclass(frozen=True, slots=True)
class Finding:
    """A warning, or an error that only a whole installation shows."""

    level: Literal["error", "warning"]
    problem: Problem


def findings(config: Config) -> tuple[Finding, ...]:
    """All of them, in the order of the file; errors first."""
    errors = tuple(Finding("error", problem) for problem in _errors(config))
    warnings = [*config.notes, *_warnings(config)]
    return errors + tuple(Finding("warning", problem) for problem in warnings)


def _errors(config: Config) -> Iterator[Problem]:
    if not is_loopback(host_of(config.installation.base_url)):
        return
    for destination in config.destinations:
        if not is_loopback(host_of(destination.url)):
            what = f"is loopback, and {destination.name} is on another machine"
            mend = "write the address under which receivers reach this installation"
            yield Problem(config.path.name, "laufzettel.base_url", what, mend)
            return


def _warnings(config: Config) -> Iterator[Problem]:
    for source in config.sources:
        yield from _of_source(config, source)
    for destination in config.destinations:
        yield from _of_destination(config, destination)
    yield from _of_installation(config)
    yield from _shared_secrets(config)


def _of_source(config: Config, source: Source) -> Iterator[Problem]:
    file, key = config.path.name, f"sources.{source.name}"
    for secret, loaded in zip(source.secrets, source.ready.keys, strict=False):
        if loaded.kind == "secret" and len(loaded.material) < SHORTEST_SECRET_BYTES:
            yield _short(file, f"{key}.secrets", secret)
    for words in profiles.warnings(source.ready):
        yield Problem(file, key, words, "change it if the source can")
    places = source.ready.mapping.url
    for place in (places,) if isinstance(places, str) else places:
        if place.startswith("http://") and not is_loopback(host_of(place)):
            yield _plain(file, f"{key}.map.url")


def _of_destination(config: Config, destination: Destination) -> Iterator[Problem]:
    file, key = config.path.name, f"destinations.{destination.name}"
    if not destination.secrets:
        mend = 'add secrets = ["env:NAME"]'
        yield Problem(file, f"{key}.secrets", "is missing: messages go out unsigned", mend)
    for secret in destination.secrets:
        key_found = signing_key(secret.reveal())
        if key_found is None or len(key_found.material) < SHORTEST_SECRET_BYTES:
            yield _short(file, f"{key}.secrets", secret)
    for name, url in (("url", destination.url), ("ask", destination.ask)):
        if url.startswith("http://") and not is_loopback(host_of(url)):
            yield _plain(file, f"{key}.{name}")


def _of_installation(config: Config) -> Iterator[Problem]:
    installation = config.installation
    for name, url in (("base_url", installation.base_url), ("public_url", installation.public_url)):
        if url.startswith("http://") and not is_loopback(host_of(url)):
            yield _plain(config.path.name, f"laufzettel.{name}")


def _shared_secrets(config: Config) -> Iterator[Problem]:
    seen: dict[str, tuple[str, str]] = {}
    parts = [(f"sources.{source.name}", source.secrets) for source in config.sources]
    parts += [(f"destinations.{place.name}", place.secrets) for place in config.destinations]
    for key, secrets in parts:
        for secret in secrets:
            first = seen.setdefault(secret.reveal(), (secret.reference, key))
            if first != (secret.reference, key):
                what = f"{secret.reference} is the same secret as {first[0]} of {first[1]}"
                mend = "give each its own, so that one that leaks opens one door"
                yield Problem(config.path.name, f"{key}.secrets", what, mend)


def _short(file: str, key: str, secret: Secret) -> Problem:
    what = f"{secret.reference} is shorter than {SHORTEST_SECRET_BYTES} bytes"
    return Problem(file, key, what, "take a longer one, made by chance")


def _plain(file: str, key: str) -> Problem:
    return Problem(file, key, "is plain HTTP to another machine", "use https")

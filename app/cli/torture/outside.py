"""Everybody outside, on one port: sources' files, receivers, token services, services of steps."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote, urlsplit

from app.cli.demo.journal import Entry, Journal, entries
from app.cli.demo.platform import Broken, Busy, NotYet, Platform, Short
from app.cli.demo.receiver import Behaviour, Receiver, keys_of
from app.cli.demo.serving import Exchange, LoopbackServer
from app.cli.torture.samples import Sample
from app.clock import Clock
from app.config import Config, Destination
from app.web.proofs import primitives
from domain import canonical
from domain.schemes import InvalidSecret

_TOKEN = {"access_token": "torture", "token_type": "Bearer", "expires_in": 3600}
_UNAVAILABLE = 503


class UnplayableError(Exception):
    """Something of the configuration cannot be played; the message says what."""


@dataclass(frozen=True, slots=True)
class Answers:
    """What a destination's ``delivered`` and ``reference`` want to see in a good answer."""

    status: int
    body: bytes
    headers: Mapping[str, str]


def good_answer(place: Destination) -> Answers:
    """An answer that counts as delivered, with a reference where one is looked for."""
    wanted = place.delivered
    body: dict[str, object] = {}
    if wanted.pointer:
        _put(body, wanted.pointer, wanted.equals)
    headers = {}
    if place.reference.startswith("header:"):
        headers[place.reference.removeprefix("header:").strip()] = "R-1"
    elif place.reference:
        _put(body, place.reference, "R-1")
    first = wanted.status[0] if wanted.status else "200"
    return Answers(int(first.lower().replace("x", "0")), json.dumps(body).encode(), headers)


def _mood(place: Destination) -> Behaviour:
    """How it fails: it keeps a message and says nothing, or it keeps nothing and says so.

    What is unclear and held waits for an operator, whom there is none of here.
    """
    if place.unclear == "hold" and _UNAVAILABLE in place.permanent:
        return Behaviour()
    is_silent = place.unclear == "ask" or _UNAVAILABLE in place.permanent
    return Behaviour(0 if is_silent else _UNAVAILABLE, drop_answer=is_silent, times=2)


def _put(body: dict[str, object], pointer: str, value: object) -> None:
    *parents, last = canonical.tokens(pointer)
    inner = body
    for name in parents:
        inner = inner.setdefault(name, {})  # type: ignore[assignment]
    inner[last] = value


class Outside:
    """The stand-ins of one trial; what they see is written down in its folder."""

    def __init__(self, folder: Path, clock: Clock) -> None:
        self._folder, self._clock = folder, clock
        self._platform = Platform(clock=clock)
        self._receivers: dict[str, Receiver] = {}
        self._answers: dict[str, Answers] = {}
        self._moods: dict[str, Behaviour] = {}
        self._server = LoopbackServer(self._respond)

    @property
    def host(self) -> str:
        """Its address, with the port."""
        return self._server.host

    def open(self, config: Config, samples: tuple[Sample, ...]) -> None:
        """Offer the samples, and listen for each destination; raises ``UnplayableError``."""
        for sample in samples:
            for version, content in enumerate(sample.contents, start=1):
                kind = sample.media_type
                self._platform.put(sample.file_id, str(version), content, media_type=kind)
        for place in config.destinations:
            self._receivers[place.name] = self._receiver(place)
            self._answers[place.name] = good_answer(place)
            self._moods[place.name] = _mood(place)
        self._server.start()

    def close(self) -> None:
        """Let go of all who wait, and free the port."""
        self._platform.close()
        for receiver in self._receivers.values():
            receiver.close()
        self._server.stop()

    def misbehave(self, samples: tuple[Sample, ...]) -> None:
        """Fail a few of the next requests as real systems do."""
        for sample in samples:
            moods = (NotYet(), Busy(retry_after="0"), Short(), Broken())
            self._platform.misbehave(sample.file_id, "1", moods[len(sample.file_id) % 4])
        for name, receiver in self._receivers.items():
            receiver.misbehave(self._moods[name])

    def told(self, destination: str) -> list[Entry]:
        """What reached this destination, in order."""
        return entries(self._folder / f"told-{destination}.jsonl")

    def _receiver(self, place: Destination) -> Receiver:
        keys = keys_of(tuple(secret.reveal() for secret in place.secrets))
        if isinstance(keys, InvalidSecret):
            raise UnplayableError(f"destinations.{place.name}.secrets: {keys.reason}")
        journal = Journal(self._folder / f"told-{place.name}.jsonl")
        return Receiver(keys, clock=self._clock, journal=journal, primitives=primitives())

    def _respond(self, exchange: Exchange) -> None:
        what, _, rest = urlsplit(exchange.target).path.lstrip("/").partition("/")
        match what:
            case "files":
                self._platform.respond(exchange)
            case "tell" if rest in self._receivers:
                self._receivers[rest].respond(_Accepting(exchange, self._answers[rest]))
            case "ask":
                self._asked(exchange, rest)
            case "token":
                exchange.answer(200, json.dumps(_TOKEN).encode())
            case "step":
                digest = hashlib.sha256(exchange.body).hexdigest()
                exchange.answer(200, digest.encode(), {"content-type": "text/plain"})
            case _:
                exchange.answer(404)

    def _asked(self, exchange: Exchange, rest: str) -> None:
        """Whether a receiver has a message."""
        name, _, message = rest.partition("/")
        known = {e["message_id"] for e in self.told(name) if e["verdict"] in {"new", "old"}}
        if unquote(message) not in known:
            exchange.answer(404)
            return
        good = self._answers[name]
        exchange.answer(200, good.body, good.headers)


class _Accepting(Exchange):
    """Answers with what its destination takes for success, where the receiver is content."""

    def __init__(self, inner: Exchange, good: Answers) -> None:
        self.__dict__.update(inner.__dict__)
        self._good = good

    def answer(
        self,
        status: int,
        body: bytes = b"",
        headers: Mapping[str, str] | None = None,
        *,
        length_bytes: int | None = None,
    ) -> None:
        if status == 200:
            good = self._good
            status, body, headers = good.status, good.body, {**(headers or {}), **good.headers}
        super().answer(status, body, headers, length_bytes=length_bytes)

"""A receiver that does what receivers are told: verify, know ids, drop what is old."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal

from app.cli.demo.journal import Journal
from app.cli.demo.serving import Exchange
from app.clock import Clock
from domain import signatures, strict_json
from domain.profiles.standard import STANDARD_WEBHOOKS
from domain.schemes import InvalidSecret, Key, Primitives, Request, load_key
from domain.strict_json import InvalidJson, JsonObject

_SCHEME = STANDARD_WEBHOOKS.schemes[0]
Verdict = Literal["new", "repeat", "old", "refused", "failed"]
Shown = Callable[["Arrival"], None]


@dataclass(frozen=True, slots=True)
class Behaviour:
    """How a receiver misbehaves, for ``times`` requests or for ever; the default does not.

    ``fail`` answers with this status before anything is kept. ``hang_s`` waits before the answer
    and ``drop_answer`` gives none: the message is kept in both.
    """

    fail: int = 0
    hang_s: float = 0.0
    drop_answer: bool = False
    times: int | None = None
    headers: Mapping[str, str] | None = None


@dataclass(frozen=True, slots=True)
class Arrival:
    """One request as the receiver judged it. ``new`` is the only verdict with an effect."""

    verdict: Verdict
    status: int
    reason: str = ""
    message_id: str = ""
    type: str = ""
    source: str = ""
    file_id: str = ""
    version: str = ""
    sequence: int = 0
    name: str = ""
    artifacts: tuple[str, ...] = ()
    artifact_ids: tuple[str, ...] = ()
    digests: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()
    error: str = ""
    body_sha256: str = ""


class Receiver:
    """Judges each request, writes it down, and only then answers.

    With a journal of an earlier life it knows the messages of that life.
    """

    def __init__(
        self,
        keys: tuple[Key, ...],
        *,
        clock: Clock,
        journal: Journal | None = None,
        shown: Shown | None = None,
        primitives: Primitives = signatures.NO_PRIMITIVES,
    ) -> None:
        self._keys, self._primitives = keys, primitives
        self._clock, self._journal, self._shown = clock, journal, shown
        self._lock = threading.Lock()
        self._closing = threading.Event()
        self._behaviour = Behaviour()
        self._known: dict[str, str] = {}
        self._last: dict[tuple[str, str], int] = {}
        for entry in journal.entries() if journal else ():
            self._remember(_arrival(entry))

    def misbehave(self, behaviour: Behaviour) -> None:
        """Behave like this from the next request on."""
        with self._lock:
            self._behaviour = behaviour

    def close(self) -> None:
        """Let go of the requests that hang."""
        self._closing.set()

    def respond(self, exchange: Exchange) -> None:
        """Take one request."""
        with self._lock:
            behaviour = self._next_behaviour()
            arrival = self._judged(exchange, fail=behaviour.fail)
            self._remember(arrival)
            self._record(arrival)
        if self._shown:
            self._shown(arrival)
        if behaviour.hang_s:
            self._clock.wait(self._closing, behaviour.hang_s)
        if behaviour.drop_answer:
            exchange.drop()
        else:
            exchange.answer(arrival.status, arrival.reason.encode(), behaviour.headers)

    def _next_behaviour(self) -> Behaviour:
        behaviour = self._behaviour
        if behaviour.times is None:
            return behaviour
        if behaviour.times == 0:
            return Behaviour()
        self._behaviour = replace(behaviour, times=behaviour.times - 1)
        return behaviour

    def _judged(self, exchange: Exchange, *, fail: int) -> Arrival:
        message_id = exchange.header("webhook-id")
        blank = Arrival(
            "refused",
            401,
            message_id=message_id,
            body_sha256=hashlib.sha256(exchange.body).hexdigest(),
        )
        why = self._unproven(exchange)
        if why:
            return replace(blank, reason=why)
        body = strict_json.parse(exchange.body)
        if isinstance(body, InvalidJson):
            return replace(blank, status=400, reason=f"the body is no JSON: {body.reason}")
        told = _told(blank, body)
        if fail:
            return replace(told, verdict="failed", status=fail, reason="told to fail")
        return self._weighed(told)

    def _unproven(self, exchange: Exchange) -> str:
        if exchange.method not in {"POST", "PUT", "PATCH"}:
            return f"{exchange.method} is no way to tell us something"
        if self._keys:
            verdict = signatures.verify(
                _SCHEME, _request(exchange), self._keys, self._clock.now(), self._primitives
            )
            if isinstance(verdict, signatures.Refused):
                return verdict.reason
        if exchange.header("idempotency-key") != exchange.header("webhook-id"):
            return "idempotency-key and webhook-id differ"
        return ""

    def _weighed(self, told: Arrival) -> Arrival:
        first_body = self._known.get(told.message_id)
        if first_body is not None:
            # The id alone decides: after the sender was restored from a backup, time and sequence
            # in a message that came before may be newer.
            is_same = first_body == told.body_sha256
            why = "this webhook-id came before" + ("" if is_same else ", with other bytes")
            return replace(told, verdict="repeat", reason=why)
        last = self._last.get((told.source, told.file_id), 0)
        if told.file_id and told.sequence <= last:
            why = f"sequence {told.sequence} is not above {last}"
            return replace(told, verdict="old", reason=why)
        return replace(told, verdict="new")

    def _remember(self, arrival: Arrival) -> None:
        if arrival.verdict in {"new", "old"}:
            self._known[arrival.message_id] = arrival.body_sha256
        if arrival.verdict == "new" and arrival.file_id:
            self._last[arrival.source, arrival.file_id] = arrival.sequence

    def _record(self, arrival: Arrival) -> None:
        if self._journal:
            self._journal.write({"at": self._clock.now().isoformat(), **asdict(arrival)})


def keys_of(secrets: tuple[str, ...]) -> tuple[Key, ...] | InvalidSecret:
    """The keys that verify what is signed with these secrets."""
    found = []
    for secret in secrets:
        key = load_key(secret, _SCHEME)
        if isinstance(key, InvalidSecret):
            return key
        found.append(_verifying(key))
    return tuple(found)


def _verifying(key: Key) -> Key:
    if key.kind != "private":
        return key
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    private = Ed25519PrivateKey.from_private_bytes(key.material[:32])
    return Key(private.public_key().public_bytes_raw(), key.id, "public")


def _request(exchange: Exchange) -> Request:
    path, _, query = exchange.target.partition("?")
    return Request(exchange.method, exchange.target, path, query, exchange.headers, exchange.body)


def _told(blank: Arrival, body: JsonObject) -> Arrival:
    data = body.get("data")
    data = data if isinstance(data, dict) else {}
    error, sequence = data.get("error"), data.get("sequence")
    return replace(
        blank,
        status=200,
        type=_text(body.get("type")),
        source=_text(data.get("source")),
        file_id=_text(data.get("file_id")),
        version=_text(data.get("version")),
        sequence=sequence if isinstance(sequence, int) else 0,
        name=_text(data.get("name")),
        artifacts=_each(data.get("artifacts"), "name"),
        artifact_ids=tuple(url.rpartition("/")[2] for url in _each(data.get("artifacts"), "url")),
        digests=_each(data.get("artifacts"), "sha256"),
        missing=_each(data.get("missing"), "name"),
        error=_text(error.get("reason")) if isinstance(error, dict) else "",
    )


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


def _each(value: object, key: str) -> tuple[str, ...]:
    entries = value if isinstance(value, list) else []
    return tuple(_text(entry.get(key)) for entry in entries if isinstance(entry, dict))


def _arrival(entry: dict[str, Any]) -> Arrival:
    known = {name: entry[name] for name in Arrival.__dataclass_fields__ if name in entry}
    # JSON has no tuples.
    told: dict[str, Any] = {k: tuple(v) if isinstance(v, list) else v for k, v in known.items()}
    return Arrival(**told)

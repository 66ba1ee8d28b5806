"""Secrets by their ids: which last proved a delivery, and which may be given up."""

from __future__ import annotations

from typing import Annotated, Any

from litestar import get
from litestar.params import QueryParameter
from msgspec import Struct

from app.config import Destination, Source
from app.store.reading import overview
from app.web.api.office import Asker, Here, Listing, at
from app.web.auth import needs
from domain.rotation import Held, judged
from domain.schemes import STANDARD_SCHEME, Key, load_key

_DAY_MS = 86_400_000

QuietDays = Annotated[
    int,
    QueryParameter(name="quiet_days", ge=0, le=3650, description="unused for so long is quiet"),
]


class SecretOut(Struct):
    """A secret: where it is from, never what it is.

    `retire` is `safe`, `in-use`, `only` (one of its source), `unused` (never proved anything),
    `gone` (configured no more), or `receiver` (only its receiver knows which one it checks).
    """

    part: str
    key_id: str
    reference: str
    last_used_at: str | None
    retire: str
    why: str


@get("/secrets", guards=[needs("viewer")], sync_to_thread=True, summary="Secrets", tags=["parts"])
def secret_list(office: Here, who: Asker, quiet_days: QuietDays = 7) -> Listing[SecretOut]:
    """Every secret that proves deliveries or signs messages, by its id, and when it last did."""
    now_ms, quiet_ms = office.now_ms, quiet_days * _DAY_MS
    found: list[SecretOut] = []
    with office.store.read() as connection:
        for source in office.config.sources:
            if who.sees(source.name):
                held = _held(source, overview.key_uses(connection, source.name))
                standings = judged(held, now_ms=now_ms, quiet_ms=quiet_ms)
                found += [_out(f"source:{source.name}", s.held, s.retire, s.why) for s in standings]
        if who.sources is None:
            for place in office.config.destinations:
                used_ms = overview.last_attempt(connection, f"destination:{place.name}")
                found += _signing(place, used_ms)
    return Listing(found)


def _held(source: Source, uses: dict[str, int]) -> list[Held]:
    """The configured secrets in their order, then those that were taken away."""
    named = {
        key.id: secret.reference
        for key, secret in zip(source.ready.keys, source.secrets, strict=False)
    }
    gone = [key_id for key_id in sorted(uses) if key_id and key_id not in named]
    return [Held(i, named.get(i, ""), uses.get(i)) for i in (*named, *gone)]


def _signing(place: Destination, used_ms: int | None) -> list[SecretOut]:
    count = len(place.secrets)
    why = "signs every message beside the others" if count > 1 else "signs every message"
    keys = [(load_key(secret.reveal(), STANDARD_SCHEME), secret) for secret in place.secrets]
    return [
        _out(f"destination:{place.name}", Held(key.id, secret.reference, used_ms), "receiver", why)
        for key, secret in keys
        if isinstance(key, Key)
    ]


def _out(part: str, held: Held, retire: str, why: str) -> SecretOut:
    return SecretOut(part, held.key_id, held.reference, at(held.used_ms), retire, why)


HANDLERS: list[Any] = [secret_list]

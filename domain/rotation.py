"""Which of several secrets may be given up: judged by what each of them last proved."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

Retire = Literal["safe", "in-use", "only", "unused", "gone"]


@dataclass(frozen=True, slots=True)
class Held:
    """A secret by its id, and when it last proved something; ``None`` for never.

    ``reference`` says where the configuration has it from; "" is one that is configured no more.
    """

    key_id: str
    reference: str
    used_ms: int | None


@dataclass(frozen=True, slots=True)
class Standing:
    """Whether a secret may be given up, and why, in words."""

    held: Held
    retire: Retire
    why: str


def judged(secrets: Sequence[Held], *, now_ms: int, quiet_ms: int) -> tuple[Standing, ...]:
    """Judge the secrets of one source.

    Safe to give up is one that proved nothing for ``quiet_ms`` while another did since. A secret
    that never proved anything is never called safe: it may be the new one.
    """
    return tuple(_judged(one, secrets, now_ms=now_ms, quiet_ms=quiet_ms) for one in secrets)


def _judged(one: Held, secrets: Sequence[Held], *, now_ms: int, quiet_ms: int) -> Standing:
    if not one.reference:
        return Standing(one, "gone", "is configured no more")
    others = [s for s in secrets if s.reference and s.key_id != one.key_id]
    if not others:
        return Standing(one, "only", "is the only one: add another before you give it up")
    if one.used_ms is None:
        return Standing(one, "unused", "proved nothing yet: it is new, or nobody signs with it")
    if now_ms - one.used_ms < quiet_ms:
        return Standing(one, "in-use", "proved a delivery lately")
    if not any((other.used_ms or 0) > one.used_ms for other in others):
        return Standing(one, "in-use", "is the last that proved a delivery")
    return Standing(one, "safe", "proved nothing lately, and another did since")

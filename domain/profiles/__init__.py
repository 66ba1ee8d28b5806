"""Source profiles: how a provider's deliveries are verified, read and answered.

The order of use is: ``greeting`` (an unsigned handshake is answered and nothing else happens),
``verify`` over the raw request, then ``read``; ``answer`` says what the provider wants to hear.
"""

from __future__ import annotations

from datetime import datetime

from domain import signatures
from domain.profiles import (
    apps,
    clouds,
    documents,
    libraries,
    notices,
    objects,
    repositories,
    standard,
)
from domain.profiles.composing import compose, word_for
from domain.profiles.reading import MAX_BATCH, read, told_ids
from domain.profiles.settings import hmac_scheme, unsigned_identity, warnings
from domain.profiles.settings import prepare as _prepare
from domain.profiles.values import (
    Action,
    Answer,
    Comparator,
    ContractBreach,
    FieldMap,
    Handshake,
    HmacSettings,
    Mapped,
    Profile,
    Reading,
    Rejected,
    SettingsError,
    Source,
    SourceEvent,
    SourceSettings,
)
from domain.schemes import NO_PRIMITIVES, Primitives, Request, Scheme
from domain.signatures import Refused, Verified

__all__ = [
    "MAX_BATCH",
    "Action",
    "Answer",
    "Comparator",
    "ContractBreach",
    "FieldMap",
    "Handshake",
    "HmacSettings",
    "Mapped",
    "Profile",
    "Reading",
    "Refused",
    "Rejected",
    "SettingsError",
    "Source",
    "SourceEvent",
    "SourceSettings",
    "Verified",
    "compose",
    "greeting",
    "hmac_scheme",
    "names",
    "prepare",
    "profile",
    "read",
    "told_ids",
    "unsigned_identity",
    "verify",
    "warnings",
    "word_for",
]

_MODULES = (apps, clouds, documents, libraries, notices, objects, repositories, standard)
_PROFILES = {
    found.name: found
    for module in _MODULES
    for found in vars(module).values()
    if isinstance(found, Profile)
}


def names() -> tuple[str, ...]:
    """The names of all profiles, in alphabetical order."""
    return tuple(sorted(_PROFILES))


def profile(name: str) -> Profile | None:
    """The profile of that name."""
    return _PROFILES.get(name)


def prepare(settings: SourceSettings) -> Source | tuple[SettingsError, ...]:
    """A configured source made ready once, at the start; else all that is wrong with it."""
    found = profile(settings.profile)
    if found is None:
        known = ", ".join(names())
        return (SettingsError("profile", "is not known", f"one of {known}"),)
    return _prepare(found, settings)


def greeting(source: Source, request: Request) -> Handshake | None:
    """The answer to an unsigned handshake; ``None`` where the request is none."""
    ask = source.profile.greeting
    return ask(source, request) if ask is not None else None


def verify(
    source: Source,
    request: Request,
    now: datetime,
    primitives: Primitives = NO_PRIMITIVES,
) -> Verified | Refused:
    """Whether the source sent these bytes, now; nothing of the body is believed before."""
    if source.profile.verifier is not None:
        return source.profile.verifier(source, request, now, primitives)
    scheme = source.schemes[0]
    if len(source.schemes) > 1:
        scheme = next((s for s in source.schemes if _speaks(s, request)), scheme)
    return signatures.verify(scheme, request, source.keys, now, primitives)


def _speaks(scheme: Scheme, request: Request) -> bool:
    # One header of a family decides for the family: its id must not stay beside another's proof.
    return any(name in scheme.headers for name, _ in request.headers)

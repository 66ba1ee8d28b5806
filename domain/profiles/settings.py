"""A configured source made ready: what is wrong is told with key and mend, nothing is guessed."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import get_args

from domain import canonical
from domain.profiles import places
from domain.profiles.values import (
    Action,
    FieldMap,
    HmacSettings,
    Profile,
    SettingsError,
    Source,
    SourceSettings,
    Where,
)
from domain.schemes import Clock, InvalidSecret, Key, Scheme, load_key, placeholders

_ACTIONS = frozenset(get_args(Action))


def prepare(profile: Profile, settings: SourceSettings) -> Source | tuple[SettingsError, ...]:
    """The source, ready to verify and read; else everything that is wrong, at once."""
    schemes = _schemes(profile, settings)
    mapping = settings.mapping.over(profile.mapping)
    batch = profile.batch if settings.batch is None else settings.batch
    scheme = schemes[0] if schemes else Scheme()
    keys = tuple(load_key(secret, scheme) for secret in settings.secrets)
    errors = [
        *_hmac_errors(profile, settings.hmac),
        *_key_errors(profile, settings, keys),
        *_map_errors(mapping),
        *_pointer_errors("batch", batch or ""),
        *_type_errors(settings),
    ]
    if errors:
        return tuple(errors)
    return Source(
        profile=profile,
        schemes=schemes,
        keys=tuple(key for key in keys if isinstance(key, Key)),
        mapping=mapping,
        spots=places.spots(mapping),
        types={**profile.types, **dict(settings.types)},
        batch=batch,
        order=settings.order or profile.order,
        settings=settings,
    )


def _schemes(profile: Profile, settings: SourceSettings) -> tuple[Scheme, ...]:
    schemes = profile.schemes
    if profile.name == "hmac" and settings.hmac is not None:
        schemes = (hmac_scheme(settings.hmac),)
    if settings.tolerance_s is None:
        return schemes
    return tuple(_with_tolerance(scheme, settings.tolerance_s) for scheme in schemes)


def _with_tolerance(scheme: Scheme, tolerance_s: float) -> Scheme:
    if scheme.clock is None:
        return scheme
    future_s = None if scheme.clock.future_s is None else tolerance_s
    return replace(scheme, clock=replace(scheme.clock, past_s=tolerance_s, future_s=future_s))


def hmac_scheme(settings: HmacSettings) -> Scheme:
    """The scheme that the keys of ``profile = "hmac"`` describe."""
    kind, _, name = _place(settings.timestamp).partition(":")
    clock = None
    if name:
        clock = Clock(entry=name) if kind == "entry" else Clock(header=name.lower())
    return Scheme(
        signed=settings.signed,
        places=(_place(settings.signature),),
        hash=settings.algorithm,
        key_form=settings.key,
        encoding=settings.encoding,
        prefix=settings.prefix,
        separator=settings.separator,
        clock=clock,
    )


def _place(text: str) -> str:
    return text if not text or ":" in text else f"header:{text}"


def _hmac_errors(profile: Profile, settings: HmacSettings | None) -> list[SettingsError]:
    if profile.name != "hmac":
        is_idle = settings is None
        return [] if is_idle else [SettingsError("algorithm", 'only profile = "hmac" has it')]
    if settings is None:
        return [SettingsError("signature", "missing", 'such as signature = "header:X-Signature"')]
    errors = []
    if not _place(settings.signature).startswith(("header:", "query:")):
        mend = 'such as signature = "header:X-Signature"'
        errors.append(SettingsError("signature", "names no header and no query", mend))
    if settings.timestamp and not _place(settings.timestamp).startswith(("header:", "entry:")):
        mend = 'such as timestamp = "header:X-Timestamp"'
        errors.append(SettingsError("timestamp", "names no header", mend))
    if "body" not in placeholders(settings.signed):
        errors.append(SettingsError("signed", "the body is not signed", "add {body} to it"))
    stray = sorted(set(places.holes(settings.signed)) - set(placeholders(settings.signed)))
    mend = "use {header:NAME}, {body}, {method}, {url}, {path}, {query} or {timestamp}"
    errors += [SettingsError("signed", f"has an unknown {{{hole}}}", mend) for hole in stray]
    return errors


def warnings(source: Source) -> tuple[str, ...]:
    """What ``check`` warns of: an identity or a time that nothing signs, a weak algorithm."""
    found = []
    if source.profile.is_unsigned:
        found.append(f"{source.profile.name} signs nothing: whoever knows the password is believed")
    for scheme in source.schemes:
        signed = {p.lower() for p in placeholders(scheme.signed)}
        if scheme.hash == "sha1" and source.profile.name == "hmac":
            found.append("algorithm sha1 is weak: use sha256 if the source can")
        if scheme.content is None and _unsigned_time(source, scheme.clock, signed):
            found.append("the time is not signed: an old delivery can be sent again as new")
    if source.profile.needs_url and not source.mapping.url:
        found.append("map.url is missing: announcements of new versions are refused")
    if unsigned_identity(source):
        found.append(f"taken from unsigned bytes: {', '.join(unsigned_identity(source))}")
    return tuple(dict.fromkeys(found))


def _unsigned_time(source: Source, clock: Clock | None, signed: set[str]) -> bool:
    if clock is None:
        # That a provider signs no time is said once, on its profile's page.
        return source.profile.name == "hmac"
    return (f"header:{clock.header}" if clock.header else "timestamp") not in signed


def unsigned_identity(source: Source) -> tuple[str, ...]:
    """The fields of identity (event, file, version, url) that come from unsigned headers."""
    if source.profile.name != "hmac":
        return () if source.profile.has_signed_id else ("event_id",)
    signed = {p.lower() for scheme in source.schemes for p in placeholders(scheme.signed)}
    names = ("event_id", "file_id", "version", "url")
    if signed & {"query", "url"}:
        signed = signed | {f"query:{name}" for name in _outside(source.mapping, "query:")}
    return tuple(name for name in names if _taken(getattr(source.mapping, name)) - signed)


def _outside(mapping: FieldMap, kind: str) -> set[str]:
    found = {name for entry in fields(mapping) for name in _taken(getattr(mapping, entry.name))}
    return {name.removeprefix(kind) for name in found if name.startswith(kind)}


def _taken(where: Where) -> set[str]:
    # What a field takes from outside the body: headers and query parameters.
    texts = places.alternatives(where)
    found = [*texts, *(hole for text in texts for hole in places.holes(text))]
    return {text.lower() for text in found if text.startswith(("header:", "query:"))}


def _key_errors(
    profile: Profile, settings: SourceSettings, keys: tuple[Key | InvalidSecret, ...]
) -> list[SettingsError]:
    mend = 'secrets = ["env:NAME"], and the variable set'
    if not settings.secrets and profile.needs_secrets:
        return [SettingsError("secrets", "none is set", mend)]
    bad = (key for key in keys if isinstance(key, InvalidSecret))
    return [SettingsError("secrets", key.reason, mend) for key in bad]


def _map_errors(mapping: FieldMap) -> list[SettingsError]:
    return [
        error
        for entry in fields(mapping)
        for text in places.alternatives(getattr(mapping, entry.name))
        for error in _pointer_errors(f"map.{entry.name}", text)
    ]


def _pointer_errors(key: str, text: str) -> list[SettingsError]:
    if "{" in text:
        return [error for hole in places.holes(text) for error in _hole_errors(key, hole)]
    if not text or text.startswith(("header:", "query:")):
        return []
    try:
        canonical.tokens(text)
    except ValueError as error:
        return [SettingsError(key, str(error), "write it as /a/b or header:NAME")]
    return []


def _hole_errors(key: str, hole: str) -> list[SettingsError]:
    if hole in places.KNOWN:
        return []
    if hole.startswith(("/", "header:", "query:")):
        return _pointer_errors(key, hole)
    known = ", ".join(f"{{{name}}}" for name in sorted(places.KNOWN))
    return [SettingsError(key, f"has an unknown {{{hole}}}", f"one of {known}, {{/a/b}}")]


def _type_errors(settings: SourceSettings) -> list[SettingsError]:
    mend = f"one of {', '.join(sorted(_ACTIONS))}"
    return [
        SettingsError(f"types.{word}", "is no action", mend)
        for word, action in settings.types
        if action not in _ACTIONS
    ]

"""A recipe's ``transforms`` table, checked against the kind that it uses."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping
from urllib.parse import urlsplit

from domain import units
from domain.recipes import Parameter
from jobs.steps.kinds import Field, StepKind

# These belong to every step and are read by the configuration itself.
OWN_KEYS = frozenset({"name", "use", "required"})
_READ: Mapping[str, Callable[[str], float | None]] = {
    "duration": units.seconds,
    "size": units.size_bytes,
}
_SUFFIX = {"duration": "_s", "size": "_bytes"}
_EXAMPLE = {"duration": '"5m"', "size": '"1 MiB"'}


class _WrongError(ValueError):
    """What is wrong with one value, in words."""


def parse(kind: StepKind, table: Mapping[str, object]) -> tuple[tuple[str, Parameter], ...] | str:
    """The pinned parameters, sorted and with every default; or what is wrong, in words."""
    given = {key: value for key, value in table.items() if key not in OWN_KEYS}
    if unknown := sorted(given.keys() - kind.fields.keys()):
        return _unknown(unknown[0], kind)
    parsed: dict[str, Parameter] = {}
    for key, field in kind.fields.items():
        try:
            value = _value(given[key], field) if key in given else field.default
        except _WrongError as wrong:
            return f"{key}: {wrong}"
        if value is None:
            return f"{key}: the step {kind.use!r} needs it"
        parsed[_kept(key, field)] = value
    return tuple(sorted(parsed.items()))


def defaults(kind: StepKind) -> dict[str, Parameter]:
    """Every parameter that need not be given, by the key under which it is kept."""
    fields = kind.fields.items()
    return {_kept(key, f): f.default for key, f in fields if f.default is not None}


def _kept(key: str, field: Field) -> str:
    return f"{key}{_SUFFIX.get(field.form, '')}"


def _unknown(key: str, kind: StepKind) -> str:
    near = difflib.get_close_matches(key, kind.fields, n=1)
    if near:
        return f"{key}: unknown for the step {kind.use!r}; did you mean {near[0]!r}?"
    known = ", ".join(sorted(kind.fields)) or "none"
    return f"{key}: unknown for the step {kind.use!r}; it takes: {known}"


def _value(value: object, field: Field) -> Parameter:
    match field.form, value:
        case "text", str():
            return _chosen(value, field)
        case "address", str():
            return _address(value)
        case "flag", bool():
            return value
        case "number", int() if not isinstance(value, bool):
            return _bounded(value, field)
        case "list", list() | tuple() if all(isinstance(item, str) for item in value):
            return tuple(_chosen(str(item), field) for item in _some(value))
        case "duration" | "size", str():
            return _bounded(_quantity(value, field.form), field)
        case form, _:
            raise _WrongError(f"expected a {form}, not {type(value).__name__}")


def _some(value: list[object] | tuple[object, ...]) -> list[object] | tuple[object, ...]:
    if not value:
        raise _WrongError("expected at least one entry")
    return value


def _chosen(value: str, field: Field) -> str:
    if "\0" in value:
        raise _WrongError("a NUL character can't be passed on")
    if field.choices and value not in field.choices:
        raise _WrongError(f"expected one of {', '.join(field.choices)}")
    return value


def _address(value: str) -> str:
    try:
        parts = urlsplit(value)
        is_http = parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.port != 0
    except ValueError:
        is_http = False
    if not is_http:
        raise _WrongError('expected an address like "https://host/path"')
    if "@" in parts.netloc:
        raise _WrongError("holds a user or a password: use auth, with the secret as env:NAME")
    return value


def _bounded(value: int, field: Field) -> int:
    if value < field.least:
        raise _WrongError(f"expected at least {field.least}")
    if field.most is not None and value > field.most:
        raise _WrongError(f"expected at most {field.most}")
    return value


def _quantity(value: str, form: str) -> int:
    amount = _READ[form](value)
    if amount is None:
        raise _WrongError(f"expected a {form} like {_EXAMPLE[form]}")
    return int(amount)

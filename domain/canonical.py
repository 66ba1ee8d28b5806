"""The one form of a JSON value that is hashed and compared: RFC 8785, with exact numbers.

Keys are in the order of their UTF-16 code units, strings in the shortest form, integers exact at
any size. Other numbers are written by value, so ``1.0``, ``1`` and ``1E+0`` are the same bytes,
while 9007199254740993 and ...992, which are equal as doubles, are not.
"""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Iterable
from decimal import Decimal
from enum import Enum
from typing import Final

from domain.strict_json import JsonValue

# Below this exponent a decimal is written with an exponent: its zeros would be without limit.
_MIN_PLAIN_EXPONENT = -32
_BEYOND_BMP = re.compile("[\U00010000-\U0010ffff]")


class Absent(Enum):
    """Nothing is at that pointer; ``null`` would be something."""

    ABSENT = "absent"


ABSENT: Final = Absent.ABSENT


class _FractionError(ValueError):
    """A number that the C encoder cannot write exactly was met."""


def encode(value: JsonValue) -> bytes:
    """The canonical bytes of a value as ``strict_json`` reads it."""
    try:
        return _fast(value)
    except _FractionError:
        return _slow(value).encode()


def encode_event(value: JsonValue) -> bytes:
    """The same for our own events, which hold no fractions: those are a defect here."""
    _refuse_fractions(value)
    return _fast(value)


def _fast(value: JsonValue) -> bytes:
    text = _ENCODER.encode(value)
    # Python sorts by code point; that differs from UTF-16 only above the basic plane.
    if not text.isascii() and _BEYOND_BMP.search(text):
        text = _slow(value)
    return text.encode()


def _integral(value: object) -> int:
    if isinstance(value, Decimal) and value.is_finite() and value == value.to_integral_value():
        return int(value)
    if isinstance(value, Decimal):
        raise _FractionError
    raise TypeError(f"a canonical form has no {type(value).__name__}")


_ENCODER = json.JSONEncoder(
    sort_keys=True,
    separators=(",", ":"),
    ensure_ascii=False,
    allow_nan=False,
    check_circular=False,
    default=_integral,
)
_quote = json.JSONEncoder(ensure_ascii=False).encode


def _slow(value: JsonValue) -> str:
    if isinstance(value, dict):
        keys = sorted(value, key=_utf_16)
        return "{" + ",".join(f"{_quote(key)}:{_slow(value[key])}" for key in keys) + "}"
    if isinstance(value, list):
        return "[" + ",".join(_slow(item) for item in value) + "]"
    if isinstance(value, Decimal):
        return _number(value)
    return _quote(value)


def _utf_16(key: str) -> bytes:
    return key.encode("utf-16-be")


def _number(value: Decimal) -> str:
    sign, digits, exponent = value.as_tuple()
    if not isinstance(exponent, int):
        raise TypeError("a canonical form has no NaN and no infinity")
    text = "".join(map(str, digits)).lstrip("0")
    short = text.rstrip("0")
    exponent += len(text) - len(short)
    if not short:
        return "0"
    minus = "-" if sign else ""
    if exponent >= 0:
        return minus + short + "0" * exponent
    if exponent < _MIN_PLAIN_EXPONENT:
        return f"{minus}{short}e{exponent}"
    padded = short.rjust(1 - exponent, "0")
    return f"{minus}{padded[:exponent]}.{padded[exponent:]}"


def _refuse_fractions(value: object) -> None:
    kind = type(value)
    if kind is dict:
        for key, member in value.items():  # type: ignore[attr-defined]
            if type(key) is not str:
                raise TypeError("an event's keys are strings")
            _refuse_fractions(member)
    elif kind is list or kind is tuple:
        for item in value:  # type: ignore[attr-defined]
            _refuse_fractions(item)
    elif kind is not str and kind is not int and kind is not bool and value is not None:
        raise TypeError(f"an event holds no {kind.__name__}")


def pointer(value: JsonValue, path: str) -> JsonValue | Absent:
    """What a JSON Pointer (RFC 6901) leads to, or ``ABSENT``."""
    return follow(value, tokens(path))


def follow(value: JsonValue, steps: tuple[str, ...]) -> JsonValue | Absent:
    """The same for a pointer that was taken apart before."""
    found: JsonValue | Absent = value
    for step in steps:
        if isinstance(found, dict):
            found = found.get(step, ABSENT)
        elif isinstance(found, list):
            index = _index(step)
            found = ABSENT if index is None or index >= len(found) else found[index]
        else:
            return ABSENT
    return found


def without(value: JsonValue, pointers: Iterable[str]) -> JsonValue:
    """A copy without what the pointers lead to; what is not there is not missed."""
    for path in pointers:
        value = _removed(value, tokens(path))
    return value


@functools.lru_cache(maxsize=1024)
def tokens(path: str) -> tuple[str, ...]:
    """The unescaped steps of a JSON Pointer; ``ValueError`` if it is none."""
    if not path:
        return ()
    if not path.startswith("/"):
        raise ValueError("a JSON Pointer begins with a slash")
    return tuple(step.replace("~1", "/").replace("~0", "~") for step in path[1:].split("/"))


def _index(token: str) -> int | None:
    is_number = token.isascii() and token.isdecimal() and len(token) <= len("1000000")
    return int(token) if is_number and (not token.startswith("0") or len(token) == 1) else None


def _removed(value: JsonValue, path: tuple[str, ...]) -> JsonValue:
    if not path:
        return None
    head, rest = path[0], path[1:]
    if isinstance(value, dict) and head in value:
        if rest:
            return {**value, head: _removed(value[head], rest)}
        return {key: member for key, member in value.items() if key != head}
    if isinstance(value, list) and (index := _index(head)) is not None and index < len(value):
        middle = [_removed(value[index], rest)] if rest else []
        return [*value[:index], *middle, *value[index + 1 :]]
    return value

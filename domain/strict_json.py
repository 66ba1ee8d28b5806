"""JSON without leniency: what two readers could understand differently is refused."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from typing import NoReturn, TypeAlias

JsonValue: TypeAlias = "bool | int | Decimal | str | list[JsonValue] | dict[str, JsonValue] | None"
JsonObject: TypeAlias = dict[str, JsonValue]

MAX_DEPTH = 100
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
# Python refuses longer integers itself (a conversion is quadratic); decimals get the same limit.
_MAX_DIGITS = 4300
_STRINGS = re.compile(rb'"(?:[^"\\]++|\\.)*+"', re.DOTALL)
_ALL_BUT_BRACKETS = bytes(set(range(256)) - set(b"[]{}"))
_SURROGATE_ESCAPE = re.compile(rb"\\u[dD][89a-fA-F]")


@dataclass(frozen=True, slots=True)
class InvalidJson:
    """Not the JSON that strictness demands; ``reason`` never repeats the content."""

    reason: str


class _RefusedError(ValueError):
    """Carries a reason out of the parser's callbacks; never leaves this module."""


def parse(body: bytes, *, max_depth: int = MAX_DEPTH) -> JsonObject | InvalidJson:
    """Read one JSON object; integers exact, other numbers as ``Decimal``."""
    value = parse_value(body, max_depth=max_depth)
    if isinstance(value, (dict, InvalidJson)):
        return value
    return InvalidJson("not an object")


def parse_value(body: bytes, *, max_depth: int = MAX_DEPTH) -> JsonValue | InvalidJson:
    """Read any JSON value under the same strictness, for sources that send arrays."""
    if reason := _refused_before_parsing(body, max_depth):
        return InvalidJson(reason)
    try:
        text = body.decode("utf-8")
        value: JsonValue = _DECODER.decode(text)
    except UnicodeDecodeError:
        return InvalidJson("not UTF-8")
    except json.JSONDecodeError as error:
        what = error.msg.lower().removesuffix(" at")
        return InvalidJson(f"not JSON: {what} at character {error.pos}")
    except _RefusedError as error:
        return InvalidJson(str(error))
    if _SURROGATE_ESCAPE.search(body) and not _is_encodable(value):
        return InvalidJson("lone surrogate")
    return value


def _refused_before_parsing(body: bytes, max_depth: int) -> str:
    if not body.strip(b" \t\r\n"):
        return "empty body"
    if body.startswith(_BYTE_ORDER_MARK):
        return "byte order mark"
    if is_deeper(body, max_depth):
        return f"nested deeper than {max_depth} levels"
    return ""


def is_deeper(body: bytes, max_depth: int) -> bool:
    """Whether brackets outside strings nest deeper; needs no recursion and reads once."""
    if body.count(b"[") + body.count(b"{") <= max_depth:
        return False
    depth = 0
    for bracket in _STRINGS.sub(b"", body).translate(None, _ALL_BUT_BRACKETS):
        depth += 1 if bracket in b"[{" else -1
        if depth > max_depth:
            return True
    return False


def _pairs(pairs: list[tuple[str, JsonValue]]) -> JsonObject:
    members = dict(pairs)
    if len(members) != len(pairs):
        raise _RefusedError("duplicate key")
    return members


def _integer(text: str) -> int:
    if len(text) > _MAX_DIGITS:
        raise _RefusedError("number too long")
    return int(text)


def _decimal(text: str) -> Decimal:
    if len(text) > _MAX_DIGITS:
        raise _RefusedError("number too long")
    if math.isinf(float(text)):
        raise _RefusedError("number out of range")
    try:
        number = Decimal(text)
    except InvalidOperation:
        raise _RefusedError("number out of range") from None
    exponent = number.as_tuple().exponent
    if not isinstance(exponent, int) or abs(exponent) > _MAX_DIGITS:
        raise _RefusedError("number out of range")
    return number


def _constant(name: str) -> NoReturn:
    raise _RefusedError(f"{name} is no JSON")


def _is_encodable(value: JsonValue) -> bool:
    return all(_is_text(text) for text in _texts(value))


def _texts(value: JsonValue) -> Iterable[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, list):
        for item in value:
            yield from _texts(item)
    elif isinstance(value, dict):
        for key, member in value.items():
            yield key
            yield from _texts(member)


def _is_text(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


_DECODER = json.JSONDecoder(
    object_pairs_hook=_pairs,
    parse_int=_integer,
    parse_float=_decimal,
    parse_constant=_constant,
)

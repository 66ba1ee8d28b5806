"""Bodies as those see them who may not see all: the values at some pointers are masked."""

from __future__ import annotations

from collections.abc import Iterable

from domain.canonical import tokens
from domain.strict_json import JsonValue

MASK = "[masked]"


def masked(value: JsonValue, pointers: Iterable[str]) -> JsonValue:
    """The value with a mask wherever a pointer leads to something."""
    for path in pointers:
        value = _masked(value, tokens(path))
    return value


def all_masked(value: JsonValue) -> JsonValue:
    """The shape of a value: its keys, and a mask in place of each text and number."""
    if isinstance(value, dict):
        return {key: all_masked(member) for key, member in value.items()}
    if isinstance(value, list):
        return [all_masked(entry) for entry in value]
    return value if isinstance(value, bool) or value is None else MASK


def _masked(value: JsonValue, path: tuple[str, ...]) -> JsonValue:
    if not path:
        return MASK
    head, rest = path[0], path[1:]
    if isinstance(value, dict) and head in value:
        return {**value, head: _masked(value[head], rest)}
    if isinstance(value, list) and head.isdecimal() and int(head) < len(value):
        at = int(head)
        return [*value[:at], _masked(value[at], rest), *value[at + 1 :]]
    return value

"""Bodies as those see them who may not see all: the values at some pointers are masked.

So is what an address proves itself with: whoever has a signed link has the file.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from domain.canonical import tokens
from domain.strict_json import JsonValue

MASK = "[masked]"
_ADDRESS = re.compile(r"(?i)\b([a-z][a-z0-9+.-]*://)(?:[^\s/?#@]*@)?([^\s?#]*)(?:[?#]\S*)?")


def masked(value: JsonValue, pointers: Iterable[str]) -> JsonValue:
    """The value with a mask wherever a pointer leads to something, and no address's proof."""
    for path in pointers:
        value = _masked(value, tokens(path))
    return _without_proofs(value)


def shown_address(text: str) -> str:
    """The text, each address in it without user, password, query and fragment."""
    return _ADDRESS.sub(lambda found: f"{found[1]}{found[2]}{_rest(found)}", text)


def _rest(found: re.Match[str]) -> str:
    return "" if found[0] == f"{found[1]}{found[2]}" else f"?{MASK}"


def _without_proofs(value: JsonValue) -> JsonValue:
    if isinstance(value, dict):
        return {key: _without_proofs(member) for key, member in value.items()}
    if isinstance(value, list):
        return [_without_proofs(entry) for entry in value]
    return shown_address(value) if isinstance(value, str) else value


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

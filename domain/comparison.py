"""When two deliveries of one event tell the same: the declared rule, and the digest under it.

The rule is kept with the receipt as a short text, so a repeat is compared by the rule that the
first delivery was compared by, whatever the configuration says since.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable

from domain import canonical, chain, strict_json
from domain.strict_json import InvalidJson, JsonValue

BYTES_RULE = "bytes"
_JSON_RULE = "json"


def rule(same: str, volatile: Iterable[str] = ()) -> str:
    """The rule as it is stored: ``bytes``, ``json``, or ``json`` with the pointers left out."""
    pointers = sorted(set(volatile))
    if same == BYTES_RULE and not pointers:
        return BYTES_RULE
    return f"{_JSON_RULE}{json.dumps(pointers, separators=(',', ':'))}" if pointers else _JSON_RULE


def comparison(body: bytes, stored_rule: str) -> str:
    """The digest, in hex, of what counts in a body under a stored rule.

    A body that is no JSON can only be compared by its bytes, under any rule.
    """
    if stored_rule != BYTES_RULE:
        value = strict_json.parse_value(body)
        if not isinstance(value, InvalidJson):
            return comparison_of(value, stored_rule)
    return hashlib.sha256(chain.framed(b"laufzettel.same.bytes.1", body)).hexdigest()


def comparison_of(value: JsonValue, stored_rule: str) -> str:
    """The same for one entry of a batch, which has no bytes of its own: always as JSON."""
    counted = canonical.without(value, _volatile(stored_rule))
    framed = chain.framed(b"laufzettel.same.json.1", canonical.encode(counted))
    return hashlib.sha256(framed).hexdigest()


def _volatile(stored_rule: str) -> list[str]:
    pointers = stored_rule.removeprefix(_JSON_RULE)
    if stored_rule == BYTES_RULE or not pointers:
        return []
    return [str(path) for path in json.loads(pointers)]

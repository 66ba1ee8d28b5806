"""What changed since the last start, said without any value."""

from __future__ import annotations

import hashlib
import hmac
import json
from collections.abc import Iterator, Mapping


def digest(raw: Mapping[str, object]) -> str:
    """The SHA-256 of what the file says, in hex: its comments and layout do not count."""
    form = json.dumps(raw, sort_keys=True, separators=(",", ":"), default=str)
    return hashlib.sha256(form.encode()).hexdigest()


def fingerprints(raw: Mapping[str, object]) -> dict[str, str]:
    """A short hash for each key of the file: equal as long as that key's value is."""
    return {
        key: hmac.digest(key.encode(), value.encode(), "sha256").hex()[:16]
        for key, value in _leaves(raw, "")
    }


def changed_keys(before: Mapping[str, str], after: Mapping[str, str]) -> tuple[str, ...]:
    """The keys that were added, removed or given another value, sorted."""
    keys = before.keys() | after.keys()
    return tuple(sorted(key for key in keys if before.get(key) != after.get(key)))


def _leaves(raw: Mapping[str, object], path: str) -> Iterator[tuple[str, str]]:
    for name, value in raw.items():
        key = f"{path}.{name}" if path else name
        if isinstance(value, dict) and value:
            yield from _leaves(value, key)
        else:
            yield key, json.dumps(value, sort_keys=True, default=str)

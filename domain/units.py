"""Durations, sizes and rates as people write them, in seconds, bytes and pieces per second."""

from __future__ import annotations

import re

_SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0, "w": 604800.0}
_BYTES = {
    "B": 1,
    "kB": 10**3,
    "KB": 10**3,
    "MB": 10**6,
    "GB": 10**9,
    "TB": 10**12,
    "KiB": 2**10,
    "MiB": 2**20,
    "GiB": 2**30,
    "TiB": 2**40,
}
_DURATION = re.compile(r"(?:[0-9]{1,9}(?:\.[0-9]{1,6})? ?(?:ms|s|m|h|d|w) ?)+")
_DURATION_PART = re.compile(r"([0-9]+(?:\.[0-9]+)?) ?(ms|s|m|h|d|w)")
_SIZE = re.compile(r"([0-9]{1,15})(?:\.([0-9]{1,3}))? ?([kKMGT]i?B|B)")
_RATE = re.compile(r"([0-9]{1,9}(?:\.[0-9]{1,3})?)/(s|m|h)")


def seconds(text: str) -> float | None:
    """``"5m"``, ``"1h 30m"``, ``"250 ms"`` in seconds; ``None`` for anything else."""
    if not _DURATION.fullmatch(text.strip()):
        return None
    return sum(float(number) * _SECONDS[unit] for number, unit in _DURATION_PART.findall(text))


def size_bytes(text: str) -> int | None:
    """``"1 MiB"``, ``"500 kB"``, ``"1.5 GiB"`` in bytes; ``None`` for anything else."""
    found = _SIZE.fullmatch(text.strip())
    if found is None or found[3] not in _BYTES:
        return None
    return int(float(f"{found[1]}.{found[2] or 0}") * _BYTES[found[3]])


def per_second(text: str) -> float | None:
    """``"50/s"``, ``"100/m"``, ``"1/h"`` in pieces per second; ``None`` for anything else."""
    found = _RATE.fullmatch(text.strip())
    return float(found[1]) / _SECONDS[found[2]] if found else None


def bytes_per_second(text: str) -> int | None:
    """``"16 KiB/s"`` in bytes per second; ``None`` for anything else."""
    amount, slash, unit = text.strip().rpartition("/")
    return size_bytes(amount) if slash and unit == "s" else None

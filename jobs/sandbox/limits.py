"""What one task in a child process may use at most."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass

KIB = 1024
MIB = 1024 * KIB


@dataclass(frozen=True, slots=True)
class Limits:
    """The kernel or the warden ends a task that passes one of these.

    ``memory_bytes`` is address space beyond what the empty child has. ``pixels``,
    ``unpacked_bytes`` and ``pages`` bind the step itself, which knows what they mean.
    """

    wall_s: float = 20.0
    cpu_s: int = 30
    memory_bytes: int = 448 * MIB
    output_bytes: int = 64 * MIB
    files: int = 256
    processes: int = 256
    pixels: int = 50_000_000
    unpacked_bytes: int = 50 * MIB
    pages: int = 10_000


def to_wire(limits: Limits) -> dict[str, float]:
    """The limits as JSON can carry them."""
    return dataclasses.asdict(limits)


def from_wire(form: Mapping[str, float]) -> Limits:
    """The inverse of ``to_wire``."""
    return Limits(wall_s=form["wall_s"], **{key: int(form[key]) for key in form if key != "wall_s"})

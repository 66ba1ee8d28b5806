"""The broker's entry points: a kind of work each, an id as the only argument."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import dramatiq

from app.store.leases import WorkKind

QUEUES: Mapping[WorkKind, str] = {
    "download": "download",
    "transform": "transform",
    "message": "notify",
}

Run = Callable[[str, WorkKind], None]
Actor = dramatiq.Actor[[str], Any]


def declare(broker: dramatiq.Broker, run: Run) -> Mapping[WorkKind, Actor]:
    """An actor for each kind of work; none of them retries, for the work's row knows when."""
    return {kind: _declared(broker, run, kind) for kind in QUEUES}


def _declared(broker: dramatiq.Broker, run: Run, kind: WorkKind) -> Actor:
    def carry_out(work: str) -> None:
        run(work, kind)

    name = QUEUES[kind]
    declare_it = dramatiq.actor(actor_name=name, queue_name=name, broker=broker)
    return declare_it(carry_out)

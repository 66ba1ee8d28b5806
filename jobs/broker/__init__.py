"""Brokers carry wake-ups: ids of due work, which may be lost, doubled, late or reordered."""

from __future__ import annotations

import dramatiq

from jobs.broker.local import LocalBroker

__all__ = ["LocalBroker", "open_broker"]


def open_broker(url: str) -> dramatiq.Broker:
    """The broker at this address; raises ``ValueError`` for one that is not known here."""
    scheme = url.partition(":")[0].lower()
    if scheme == "memory":
        return LocalBroker()
    # TODO: redis and amqp, as soon as several worker processes share a store.
    raise ValueError(f"broker: {scheme} is not supported yet; use memory:")

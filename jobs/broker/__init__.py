"""Brokers carry wake-ups: ids of due work, which may be lost, doubled, late or reordered."""

from __future__ import annotations

import dramatiq

from jobs.broker.local import LocalBroker

__all__ = ["LocalBroker", "open_broker"]


def open_broker(url: str) -> dramatiq.Broker:
    """The broker at this address; raises ``ValueError`` for one that is not known here.

    Nothing is connected yet: a broker that is down fails whoever uses it, and only then, with
    ``dramatiq.errors.BrokerConnectionError``.
    """
    match url.partition(":")[0].lower():
        case "memory":
            return LocalBroker()
        case "redis" | "rediss" | "valkey" | "valkeys":
            from jobs.broker.redis import ValkeyBroker

            return ValkeyBroker(url)
        case "amqp" | "amqps":
            from jobs.broker.amqp import AmqpBroker

            return AmqpBroker(url)
        case scheme:
            raise ValueError(f"broker: {scheme} is not known; use memory:, redis:// or amqp://")

"""Brokers carry wake-ups: ids of due work, which may be lost, doubled, late or reordered."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dramatiq.errors import BrokerConnectionError

from jobs.broker.local import LocalBroker

if TYPE_CHECKING:  # each needs its own client
    from jobs.broker.amqp import AmqpBroker
    from jobs.broker.redis import ValkeyBroker

    Carrier = LocalBroker | ValkeyBroker | AmqpBroker

__all__ = ["BrokerConnectionError", "LocalBroker", "open_broker", "ping"]


def open_broker(url: str) -> Carrier:
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


def ping(url: str) -> None:
    """Ask the broker for an answer; raises ``BrokerConnectionError`` if none comes."""
    broker = open_broker(url)
    try:
        broker.ping()
    finally:
        broker.close()

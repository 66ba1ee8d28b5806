"""Wake-ups through Redis or Valkey: bounded, without delays, nothing kept of what failed."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import dramatiq
import redis
from dramatiq.broker import Consumer
from dramatiq.brokers.redis import RedisBroker
from dramatiq.errors import BrokerConnectionError, QueueNotFound

LONGEST_LINE = 4096
_NAMESPACE = "laufzettel"
# How long a server may take to answer before it counts as down.
_PATIENCE_S = 5.0
# Wake-ups that a dead process had taken are given to others after so long; failed ones are gone.
_HEARTBEAT_MS = 30_000
_KEPT_MS = 60_000


class ValkeyBroker(RedisBroker):
    """Carries wake-ups by Redis' protocol. A full queue takes no more: the relay finds it again."""

    def __init__(self, url: str, *, limit: int = LONGEST_LINE) -> None:
        client = redis.Redis.from_url(
            url.replace("valkey", "redis", 1) if url.startswith("valkey") else url,
            socket_timeout=_PATIENCE_S,
            socket_connect_timeout=_PATIENCE_S,
            health_check_interval=30,
        )
        super().__init__(  # type: ignore[no-untyped-call]
            client=client,
            middleware=[],
            namespace=_NAMESPACE,
            heartbeat_timeout=_HEARTBEAT_MS,
            dead_message_ttl=_KEPT_MS,
        )
        self._limit = limit

    def enqueue(
        self, message: dramatiq.Message[Any], *, delay: int | None = None
    ) -> dramatiq.Message[Any]:
        """Let the message wait, unless the queue is full: then it is dropped."""
        if delay is not None:
            raise ValueError("there are no delays here: the relay knows when work is due")
        with _translated():
            if self.waiting(message.queue_name) < self._limit:
                return super().enqueue(message)
        return message

    def ping(self) -> None:
        """Ask the server for an answer; raises ``BrokerConnectionError`` if none comes."""
        with _translated():
            self.client.ping()

    def waiting(self, queue_name: str) -> int:
        """How many wake-ups wait in the queue."""
        with _translated():
            return int(self.client.llen(f"{_NAMESPACE}:{queue_name}"))

    def consume(self, queue_name: str, prefetch: int = 1, timeout: int = 1000) -> Consumer:
        """A consumer that waits at most ``timeout`` milliseconds for each message."""
        if queue_name not in self.queues and queue_name not in self.delay_queues:
            raise QueueNotFound(queue_name)  # type: ignore[no-untyped-call]
        return super().consume(queue_name, prefetch, timeout)

    def close(self) -> None:
        """Close the connections."""
        super().close()
        self.client.close()


@contextmanager
def _translated() -> Iterator[None]:
    try:
        yield
    except redis.RedisError as error:
        raise BrokerConnectionError(type(error).__name__) from error  # type: ignore[no-untyped-call]
    except TypeError as error:
        # The client takes the query of an address for its own options, and only looks at them now.
        what = "an option in the query of its address is not known"
        raise BrokerConnectionError(what) from error  # type: ignore[no-untyped-call]

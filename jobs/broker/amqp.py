"""Wake-ups through RabbitMQ: confirmed, bounded, without delays."""

from __future__ import annotations

from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

import dramatiq
import pika.exceptions
from dramatiq.broker import Consumer
from dramatiq.brokers.rabbitmq import RabbitmqBroker
from dramatiq.errors import BrokerConnectionError, QueueNotFound

LONGEST_LINE = 4096
# How long a server may take to answer before it counts as down.
_PATIENCE = {"socket_timeout": "5", "stack_timeout": "8", "blocked_connection_timeout": "5"}


class AmqpBroker(RabbitmqBroker):
    """Carries wake-ups by AMQP. Of a full queue the oldest is dropped: the relay finds it again."""

    def __init__(self, url: str, *, limit: int = LONGEST_LINE) -> None:
        super().__init__(url=_patient(url), middleware=[], confirm_delivery=True)
        self._limit = limit

    def enqueue(
        self, message: dramatiq.Message[Any], *, delay: int | None = None
    ) -> dramatiq.Message[Any]:
        """Let the message wait; whoever waited longest goes where the queue is full."""
        if delay is not None:
            raise ValueError("there are no delays here: the relay knows when work is due")
        try:
            return super().enqueue(message)
        except (pika.exceptions.AMQPError, OSError) as error:
            raise BrokerConnectionError(type(error).__name__) from error  # type: ignore[no-untyped-call]

    def ping(self) -> None:
        """Ask the server for an answer; raises ``BrokerConnectionError`` if none comes."""
        try:
            self.connection.process_data_events(time_limit=0)
        except (pika.exceptions.AMQPError, OSError) as error:
            raise BrokerConnectionError(type(error).__name__) from error  # type: ignore[no-untyped-call]

    def consume(self, queue_name: str, prefetch: int = 1, timeout: int = 1000) -> Consumer:
        """A consumer that waits at most ``timeout`` milliseconds for each message."""
        if queue_name not in self.queues and queue_name not in self.delay_queues:
            raise QueueNotFound(queue_name)  # type: ignore[no-untyped-call]
        return super().consume(queue_name, prefetch, timeout)

    def _build_queue_arguments(self, queue_name: str) -> dict[str, Any]:
        # A dead letter here would be a wake-up that nobody reads: what fails or overflows is gone.
        del queue_name
        return {"x-max-length": self._limit, "x-overflow": "drop-head"}


def _patient(url: str) -> str:
    parts = urlsplit(url)
    query = _PATIENCE | dict(parse_qsl(parts.query))
    return urlunsplit(parts._replace(query=urlencode(query)))

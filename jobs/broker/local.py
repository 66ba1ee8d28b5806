"""The broker of a process that has everything in it: bounded, with distinct ids, without delays.

What does not fit is dropped: the row of the work is the truth, and the relay finds it again.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Iterable
from typing import Any

import dramatiq
from dramatiq.broker import Consumer, MessageProxy
from dramatiq.errors import QueueJoinTimeout, QueueNotFound

LONGEST_LINE = 4096


class Line:
    """One queue: waiting messages by what they are about, and how many are being worked on."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._waiting: OrderedDict[tuple[Any, ...], dramatiq.Message[Any]] = OrderedDict()
        self._taken = 0
        self._changed = threading.Condition()

    def put(self, message: dramatiq.Message[Any]) -> bool:
        """Let it wait; false if it is full. One about the same is enough."""
        key = (message.actor_name, *message.args)
        with self._changed:
            if key not in self._waiting and len(self._waiting) >= self._limit:
                return False
            self._waiting.setdefault(key, message)
            self._changed.notify()
            return True

    def take(self, timeout_s: float) -> dramatiq.Message[Any] | None:
        """The one that waits longest; ``None`` if none comes in time."""
        with self._changed:
            if not self._changed.wait_for(lambda: self._waiting, timeout_s):
                return None
            _, message = self._waiting.popitem(last=False)
            self._taken += 1
            return message

    def done(self, count: int = 1) -> None:
        """So many of those that were taken need no more work."""
        with self._changed:
            self._taken -= count
            self._changed.notify_all()

    def clear(self) -> None:
        """Forget those that wait."""
        with self._changed:
            self._waiting.clear()
            self._changed.notify_all()

    def join(self, timeout_s: float | None) -> bool:
        """Wait until none waits and none is being worked on; whether that came about."""
        with self._changed:
            return self._changed.wait_for(lambda: not self._waiting and not self._taken, timeout_s)

    @property
    def load(self) -> int:
        """How many wait or are being worked on."""
        with self._changed:
            return len(self._waiting) + self._taken

    def __len__(self) -> int:
        with self._changed:
            return len(self._waiting)


class LocalBroker(dramatiq.Broker):
    """Queues in memory, without middleware: nothing is retried, nothing is kept on failure."""

    def __init__(self, *, limit: int = LONGEST_LINE) -> None:
        super().__init__(middleware=[])
        self.queues: dict[str, Line] = {}
        self._limit = limit

    def ping(self) -> None:
        """It is in this process."""

    def declare_queue(self, queue_name: str) -> None:
        """Make the queue, if it is not there."""
        if queue_name in self.queues:
            return
        self.emit_before("declare_queue", queue_name)
        self.queues[queue_name] = Line(self._limit)
        self.emit_after("declare_queue", queue_name)

    def enqueue(
        self, message: dramatiq.Message[Any], *, delay: int | None = None
    ) -> dramatiq.Message[Any]:
        """Let the message wait, unless the queue is full: then it is dropped."""
        if delay is not None:
            raise ValueError("there are no delays here: the relay knows when work is due")
        line = self._line(message.queue_name)
        self.emit_before("enqueue", message, delay)
        line.put(message)
        self.emit_after("enqueue", message, delay)
        return message

    def consume(self, queue_name: str, prefetch: int = 1, timeout: int = 1000) -> Consumer:
        """A consumer that waits at most ``timeout`` milliseconds for each message."""
        return _LocalConsumer(self._line(queue_name), prefetch, timeout / 1000)

    def flush(self, queue_name: str) -> None:
        """Forget what waits in the queue."""
        self._line(queue_name).clear()

    def flush_all(self) -> None:
        """Forget what waits in every queue."""
        for line in self.queues.values():
            line.clear()

    def join(self, queue_name: str, *, timeout: int | None = None) -> None:
        """Wait until the queue is worked off; raises ``QueueJoinTimeout``."""
        if not self._line(queue_name).join(None if timeout is None else timeout / 1000):
            raise QueueJoinTimeout(queue_name)  # type: ignore[no-untyped-call]

    @property
    def load(self) -> int:
        """How many wait or are being worked on, in all queues."""
        return sum(line.load for line in self.queues.values())

    def _line(self, queue_name: str) -> Line:
        try:
            return self.queues[queue_name]
        except KeyError:
            raise QueueNotFound(queue_name) from None  # type: ignore[no-untyped-call]


class _LocalConsumer(Consumer):
    def __init__(self, line: Line, prefetch: int, timeout_s: float) -> None:
        self._line = line
        self._free = threading.Semaphore(prefetch)
        self._timeout_s = timeout_s

    def __next__(self) -> MessageProxy | None:
        if not self._free.acquire(timeout=self._timeout_s):
            return None
        message = self._line.take(self._timeout_s)
        if message is None:
            self._free.release()
            return None
        return MessageProxy(message)

    def ack(self, message: MessageProxy) -> None:
        del message
        self._line.done()
        self._free.release()

    def nack(self, message: MessageProxy) -> None:
        # A failed wake-up is no dead letter: the work is still due, or its row says why not.
        self.ack(message)

    def requeue(self, messages: Iterable[MessageProxy]) -> None:
        for message in messages:
            self._line.put(message._message)  # noqa: SLF001 - the proxy has no other way to it
            self._line.done()
            self._free.release()

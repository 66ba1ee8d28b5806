"""What a broker must do, whichever it is: carry ids to actors, survive failures, stop in order."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import dramatiq
import pytest
from dramatiq.errors import QueueNotFound

from app.store.leases import WorkKind
from jobs import actors
from jobs.broker import LocalBroker, open_broker
from tests.runtimes import until

Seen = list[tuple[str, WorkKind]]


@pytest.fixture
def broker() -> Iterator[dramatiq.Broker]:
    made = open_broker("memory:")
    yield made
    made.close()


@pytest.fixture
def seen() -> Seen:
    return []


def started(broker: dramatiq.Broker) -> dramatiq.Worker:
    worker = dramatiq.Worker(broker, worker_threads=4, worker_timeout=50)
    worker.start()
    return worker


@pytest.mark.req("D1")
def test_each_kind_of_work_reaches_its_actor(broker: dramatiq.Broker, seen: Seen) -> None:
    declared = actors.declare(broker, lambda work, kind: seen.append((work, kind)))
    worker = started(broker)
    for kind, actor in declared.items():
        actor.send(f"id-of-{kind}")
    until(lambda: len(seen) == 3)
    worker.stop()
    assert sorted(seen) == [(f"id-of-{kind}", kind) for kind in sorted(declared)]


def test_an_actor_that_fails_is_not_called_again(broker: dramatiq.Broker, seen: Seen) -> None:
    def fail(work: str, kind: WorkKind) -> None:
        seen.append((work, kind))
        if work == "bad":
            raise RuntimeError("a defect")

    declared = actors.declare(broker, fail)
    worker = started(broker)
    declared["download"].send("bad")
    declared["download"].send("good")
    until(lambda: ("good", "download") in seen)
    broker.join("download", timeout=5000)
    worker.stop()
    assert seen.count(("bad", "download")) == 1


def test_what_a_stopped_worker_left_is_there_for_the_next(
    broker: dramatiq.Broker, seen: Seen
) -> None:
    go_on = threading.Event()

    def slow(work: str, kind: WorkKind) -> None:
        seen.append((work, kind))
        go_on.wait(10)

    declared = actors.declare(broker, slow)
    worker = started(broker)
    for number in range(20):
        declared["message"].send(f"m-{number}")
    until(lambda: len(seen) == 4)
    stopping = threading.Thread(target=worker.stop)
    stopping.start()
    go_on.set()
    stopping.join()
    second = started(broker)
    until(lambda: len({work for work, _ in seen}) == 20)
    second.stop()


def test_there_are_no_delays_and_no_unknown_queues(broker: dramatiq.Broker) -> None:
    declared = actors.declare(broker, lambda *_: None)
    with pytest.raises(ValueError, match="delays"):
        declared["download"].send_with_options(args=("x",), delay=1000)
    with pytest.raises(QueueNotFound):
        broker.consume("nothing")


# -- what only the local broker promises ---------------------------------------------------------


def test_a_wake_up_that_waits_already_is_enough() -> None:
    broker = LocalBroker()
    declared = actors.declare(broker, lambda *_: None)
    for _ in range(3):
        declared["download"].send("same")
    declared["download"].send("other")
    assert len(broker.queues["download"]) == 2


@pytest.mark.req("A12")
def test_what_does_not_fit_is_dropped() -> None:
    broker = LocalBroker(limit=10)
    declared = actors.declare(broker, lambda *_: None)
    for number in range(50):
        declared["download"].send(f"j-{number}")
    assert len(broker.queues["download"]) == 10
    broker.flush_all()
    assert len(broker.queues["download"]) == 0


def test_an_unknown_broker_is_refused() -> None:
    with pytest.raises(ValueError, match="memory:"):
        open_broker("kafka://x")

"""What a broker must do, whichever it is: carry ids to actors, survive failures, stop in order."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import dramatiq
import pytest
from dramatiq.errors import BrokerConnectionError, QueueNotFound

from app.store.leases import WorkKind
from jobs import actors
from jobs.broker import LocalBroker, open_broker
from jobs.broker.amqp import AmqpBroker
from jobs.broker.redis import ValkeyBroker
from tests.brokers import Rabbit, Valkey, rabbit_server, valkey_server
from tests.runtimes import until
from tests.servers import closed_port
from tests.stores import missing

Seen = list[tuple[str, WorkKind]]


@pytest.fixture(scope="session")
def valkey(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Valkey]:
    with valkey_server(tmp_path_factory.mktemp("valkey")) as server:
        yield server


@pytest.fixture(scope="session")
def rabbit(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Rabbit]:
    if not Rabbit.is_installed():
        missing("RabbitMQ is not installed: apt-get install rabbitmq-server")
    with rabbit_server(tmp_path_factory.mktemp("rabbit")) as server:
        yield server


@pytest.fixture(params=["local", "valkey", "rabbit"])
def broker(request: pytest.FixtureRequest) -> Iterator[dramatiq.Broker]:
    """An empty broker of each kind."""
    is_local = request.param == "local"
    made = open_broker("memory:" if is_local else request.getfixturevalue(request.param).url)
    for queue in actors.QUEUES.values():
        made.declare_queue(queue)
        if not is_local:
            made.flush(queue)
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


@pytest.mark.req("A12")
@pytest.mark.parametrize("kind", ["valkey", "rabbit"])
def test_a_queue_that_is_full_grows_no_more(kind: str, request: pytest.FixtureRequest) -> None:
    url = request.getfixturevalue(kind).url
    broker = ValkeyBroker(url, limit=10) if kind == "valkey" else AmqpBroker(url, limit=10)
    # RabbitMQ fixes a queue's limit when it is made, so this one is the test's own.
    broker.declare_queue("narrow")
    for number in range(30):
        broker.enqueue(dramatiq.Message("narrow", "narrow", (f"j-{number}",), {}, {}))
    consumer = broker.consume("narrow", prefetch=100, timeout=200)
    found = [message for _ in range(40) if (message := next(consumer)) is not None]
    for message in found:
        consumer.ack(message)
    consumer.close()
    broker.close()
    assert len(found) == 10


@pytest.mark.req("A13")
@pytest.mark.parametrize("scheme", ["redis", "amqp"])
def test_a_broker_that_is_down_says_so_to_whoever_uses_it(scheme: str) -> None:
    broker = open_broker(f"{scheme}://127.0.0.1:{closed_port()}/")
    declared = actors.declare(broker, lambda *_: None)
    with pytest.raises(BrokerConnectionError):
        declared["download"].send("x")
    broker.close()


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
    with pytest.raises(ValueError, match="kafka is not known"):
        open_broker("kafka://x")

"""KafkaBolt with transactions over a real broker: each message once for who reads what is committed, and in order."""

from __future__ import annotations

import logging
import threading
import time
from collections import defaultdict
from pathlib import Path
from typing import Any, ClassVar

import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition

from stormspark import Bolt, Fields, Topology, TopologyBuilder
from stormspark.connectors import KafkaBolt
from stormspark.connectors.kafka_transactions import Message, TransactionalProducer
from tests.kafka_broker import KafkaBroker
from tests.unit.connectors.exactly_once_components import Numbers
from tests.unit.worker.durable_workers import DurableWorkers
from tests.waiting import PATIENCE_SECS

pytestmark = [pytest.mark.faults, pytest.mark.slow]

LOGGER = logging.getLogger(__name__)


def committed_messages(broker: KafkaBroker, topic: str) -> list[tuple[bytes | None, bytes | None]]:
    """Keys and values as a consumer with ``isolation.level=read_committed`` sees them, partition by partition."""
    consumer = Consumer(
        {"bootstrap.servers": broker.bootstrap, "group.id": "tests", "enable.auto.commit": False,
         "enable.partition.eof": True, "isolation.level": "read_committed"}
    )  # fmt: skip
    found = []
    try:
        for partition in sorted(consumer.list_topics(topic, 30).topics[topic].partitions):
            consumer.assign([TopicPartition(topic, partition, 0)])
            while (message := consumer.poll(30)) is not None:
                if (error := message.error()) is None:
                    found.append((message.key(), message.value()))
                elif error.code() == KafkaError._PARTITION_EOF:
                    break
                else:
                    raise KafkaException(error)
    finally:
        consumer.close()
    return found


def producer(broker: KafkaBroker, name: str) -> TransactionalProducer:
    return TransactionalProducer(
        name, {"bootstrap.servers": broker.bootstrap, "message.timeout.ms": 5000}, LOGGER
    )


def batch(topic: str, *values: int) -> list[Message]:
    return [Message(topic, b"k", str(value).encode()) for value in values]


def test_a_batch_is_delivered_once_whoever_delivers_it(kafka: KafkaBroker) -> None:
    """K8, C42: again by the same one, by one that comes after it, and by one that was thought dead."""
    kafka.create_topic("once", partitions=2)
    first, second = producer(kafka, "once-task"), producer(kafka, "once-task")
    for _ in range(2):
        first.deliver(0, batch("once", 1, 2), "once")
    first.deliver(1, batch("once", 3), "once")
    second.deliver(1, batch("once", 3), "once")
    second.deliver(2, batch("once", 4), "once")
    with pytest.raises(KafkaException):  # fenced off
        first.deliver(2, batch("once", 4), "once")
    first.deliver(2, batch("once", 4), "once")  # it looks, and sees
    second.close()
    first.close()
    assert committed_messages(kafka, "once") == [(b"k", str(n).encode()) for n in (1, 2, 3, 4)]


def test_what_was_begun_and_not_committed_is_never_seen(kafka: KafkaBroker) -> None:
    """K8, C42: and holds nobody up who comes after it."""
    kafka.create_topic("begun", partitions=1)
    first = producer(kafka, "begun-task")
    first.find("begun")
    first._producer.begin_transaction()
    first._producer.produce("begun", b"never", b"k")
    first._producer.flush(10)
    second = producer(kafka, "begun-task")
    began = time.monotonic()
    second.deliver(0, batch("begun", 7), "begun")
    assert time.monotonic() - began < 30, "a transaction that nobody ends lasts a minute"
    assert committed_messages(kafka, "begun") == [(b"k", b"7")]
    second.close()
    first.close()


def test_a_topic_that_is_not_there_is_named(kafka: KafkaBroker) -> None:
    """K8: and the batch is delivered when somebody has made it."""
    kafka.create_topic("there", partitions=1)
    one = TransactionalProducer(
        "missing-task",
        {"bootstrap.servers": kafka.bootstrap, "message.timeout.ms": 3000, "topic.metadata.propagation.max.ms": 500},
        LOGGER,
    )  # fmt: skip
    messages = [*batch("there", 1), *batch("missing", 2)]
    with pytest.raises(OSError, match=r"not delivered to topic 'missing': .*(Unknown|timed out)"):
        one.deliver(0, messages, "there")
    kafka.create_topic("missing", partitions=1)
    one.deliver(0, messages, "there")
    one.close()
    assert committed_messages(kafka, "there") == [(b"k", b"1")]
    assert committed_messages(kafka, "missing") == [(b"k", b"2")]


class Stuck:
    """A producer whose coordinator does not answer until ``released`` is set."""

    def __init__(self, producer: Any) -> None:
        self.producer, self.released, self.returned = producer, threading.Event(), threading.Event()

    def send_offsets_to_transaction(self, *arguments: Any) -> None:
        self.released.wait()
        try:
            self.producer.send_offsets_to_transaction(*arguments)
        finally:
            self.returned.set()

    def __getattr__(self, name: str) -> Any:
        return getattr(self.producer, name)


def test_a_call_that_does_not_return_is_left_to_itself(kafka: KafkaBroker) -> None:
    """K8, C42: librdkafka may wait for a coordinator that was away for ever; what it does later is fenced off."""
    kafka.create_topic("stuck-within", partitions=1)
    one = TransactionalProducer("stuck-task", {"bootstrap.servers": kafka.bootstrap}, LOGGER, block_secs=3)
    one.deliver(0, batch("stuck-within", 1), "stuck-within")
    one._producer = stuck = Stuck(one._producer)
    with pytest.raises(KafkaException, match="no answer from the coordinator of group 'stuck-task' in 6 s"):
        one.deliver(1, batch("stuck-within", 2), "stuck-within")
    one.deliver(1, batch("stuck-within", 2), "stuck-within")
    stuck.released.set()
    assert stuck.returned.wait(PATIENCE_SECS)
    one.deliver(2, batch("stuck-within", 3), "stuck-within")
    one.close()
    assert committed_messages(kafka, "stuck-within") == [(b"k", b"1"), (b"k", b"2"), (b"k", b"3")]


class Faulty(Bolt):
    """Passes on, and raises in the first attempts at some batches."""

    raises: ClassVar[list[int]] = []

    def prepare(self, conf: Any, context: Any, collector: Any) -> None:
        self.collector = collector

    def execute(self, tup: Any) -> None:
        if int(tup["message"]) in Faulty.raises:
            Faulty.raises.remove(int(tup["message"]))
            raise RuntimeError("a fault")
        self.collector.emit(tup.values, anchors=[tup])
        self.collector.ack(tup)

    def declare_output_fields(self, declarer: Any) -> None:
        declarer.declare(Fields("key", "message"))


def keyed(n: int) -> tuple[str, str]:
    return f"k{n % 7}", str(n)


def topology(bolt: KafkaBolt) -> Topology:
    builder = TopologyBuilder()
    builder.set_spout("numbers", Numbers(keyed, ("key", "message"), 20))
    builder.set_bolt("faulty", Faulty()).shuffle_grouping("numbers")
    builder.set_bolt("sink", bolt, 2).fields_grouping("faulty", Fields("key"))
    return builder.create_topology("to-kafka")


def bolt_for(broker: KafkaBroker, topic: str) -> KafkaBolt:
    properties = {"bootstrap.servers": broker.bootstrap, "message.timeout.ms": 5000, "max.block.ms": 1500}
    return KafkaBolt().with_producer_properties(properties).with_topic_selector(topic)


@pytest.fixture
def no_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("stormspark.connectors.outbox._FIRST_PAUSE", 0.0)


def by_key(broker: KafkaBroker, topic: str) -> dict[str, list[int]]:
    found: dict[str, list[int]] = defaultdict(list)
    for key, value in committed_messages(broker, topic):
        assert key is not None and value is not None
        found[key.decode()].append(int(value))
    return found


@pytest.mark.long  # CI has a topic among the sinks of tests/faults/outputs
@pytest.mark.usefixtures("no_pause")
def test_lives_that_end_anywhere_and_a_broker_that_is_killed(kafka: KafkaBroker, tmp_path: Path) -> None:
    """K8, C42, C44: each number once, and in order within its key."""
    kafka.create_topic("lives", partitions=3)
    Faulty.raises = [45, 130]
    sink = topology(bolt_for(kafka, "lives").with_transactions())
    lives = DurableWorkers(sink, tmp_path, {"topology.workers": 2})
    batches, errors = 0, 0
    for step in range(12):
        if step in (2, 3, 7):
            lives = DurableWorkers(sink, tmp_path, {"topology.workers": 2}, step)  # as if by kill -9
        if step == 5:
            kafka.kill()
        reports = lives.run_batch()
        batches += 1
        errors += sum(len(report.errors) for report in reports)
        if step == 8:
            kafka.start()
    lives.run_batch()
    lives.close()
    expected: dict[str, list[int]] = defaultdict(list)
    for n in range(20 * (batches + 1)):
        expected[keyed(n)[0]].append(n)
    assert by_key(kafka, "lives") == expected
    assert errors and not Faulty.raises


def test_without_kafkas_transactions_a_batch_waits_for_its_messages(
    kafka: KafkaBroker, tmp_path: Path
) -> None:
    """K8, C44: what is committed is in the topic, and what came again is there twice."""
    kafka.create_topic("plain", partitions=2)
    Faulty.raises = [30]
    sink = topology(bolt_for(kafka, "plain"))
    lives = DurableWorkers(sink, tmp_path, {"topology.workers": 2})
    for _ in range(3):
        lives.run_batch()
    committed = lives.state("numbers")["n"]
    assert {n for values in by_key(kafka, "plain").values() for n in values} == set(range(committed))
    lives.close()


def test_a_broker_that_does_not_answer_makes_the_batch_come_again(kafka: KafkaBroker, tmp_path: Path) -> None:
    """K8, C44: without Kafka's transactions; nothing is committed that is not written."""
    kafka.create_topic("away", partitions=1)
    properties = {"bootstrap.servers": kafka.bootstrap, "reconnect.backoff.max.ms": 100}
    conf = {"topology.workers": 1, "stormspark.max.attempts": 2}
    Faulty.raises = []
    patient = KafkaBolt().with_producer_properties(properties).with_topic_selector("away")
    lives = DurableWorkers(topology(patient), tmp_path, conf)
    lives.run_batch()
    lives.close()
    hasty = KafkaBolt().with_producer_properties({**properties, "message.timeout.ms": 700})
    lives = DurableWorkers(topology(hasty.with_topic_selector("away")), tmp_path, conf, 1)
    kafka.kill()
    try:
        with pytest.raises(Exception, match="messages of the batch are not written"):
            lives.run_batch()
    finally:
        kafka.start()
    assert lives.commits.last == 0
